"""Security words in a path count for stakes as whole segments or file stems, and never inside other words."""

import pytest

from pointsman.services.router.domain.enums import Debate, PlanningTrigger, Stakes
from tests.unit.router.reading import decide


@pytest.mark.parametrize(
    "text",
    [
        "fix the bug in src/api/auth.ts and update tests",
        "change config/secrets.yml",
        "edit .ssh/id_key",
        "rename ~/.ssh/id_rsa.pub",
        "refactor lib/auth/session.rb",
        "update src/auth.ts:12",
        "rewrite auth.service.ts",
        "the page crashes in src/token.ts",
        "vim config/credentials.json",
        r"update C:\project\secrets\prod.json",
        "sed -i s/a/b/ keys/deploy.txt",
        "ändere src/auth.ts",
        "修改 src/api/auth.ts",
    ],
)
def test_a_security_word_in_a_path_counts_for_stakes(text: str) -> None:
    found = decide(text)
    assert (found.debate, found.stakes) == (Debate.PLANNING, Stakes.HIGH)
    assert [reason.trigger for reason in found.reasons] == [PlanningTrigger.SECURITY]


@pytest.mark.parametrize(
    "text",
    [
        "fix src/author.ts",
        "update docs/keyboard.md",
        "refactor src/tokenizer/main.py",
        "rename src/secretary.py",
        "fix lib/authors/list.rb",
        "change monkey.ts",
        "update src/passwordless_demo.py",
    ],
)
def test_a_security_word_inside_another_word_of_a_path_does_not_count(text: str) -> None:
    assert decide(text).stakes is Stakes.NONE


@pytest.mark.parametrize(
    "text", ["show me src/api/auth.ts", "cat config/secrets.yml", "what does src/auth.ts do?", "src/auth.ts was fine"]
)
def test_a_path_of_security_that_is_only_looked_at_or_told_of_does_not_count(text: str) -> None:
    found = decide(text)
    assert (found.debate, found.stakes) == (Debate.NONE, Stakes.NONE)


def test_an_endpoint_in_a_log_is_no_path_of_security() -> None:
    assert decide("API POST /auth/sms/send-code failed in src/api.ts, fix it").stakes is Stakes.NONE


def test_the_reason_stands_where_the_path_does() -> None:
    text = "fix the bug in src/api/auth.ts"
    (reason,) = decide(text).reasons
    assert text[reason.start : reason.end] == "src/api/auth.ts"
