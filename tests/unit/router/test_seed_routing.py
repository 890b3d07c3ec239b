"""Every sentence of the task router's specification that states a behaviour."""

import pytest

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.enums import (
    Bypass,
    Confidence,
    Debate,
    Mode,
    PlanningTrigger,
    RouteTarget,
    Stakes,
)
from pointsman.services.router.domain.model import Classification
from pointsman.services.router.rules import standard_rule_book

ANSWER, ACTION = Mode.ANSWER, Mode.ACTION


def decide(text: str, **around: bool) -> Classification:
    return classify(standard_rule_book(), text, **around)


def names(text: str) -> list[str]:
    return [trigger.name for trigger in decide(text).triggers]


@pytest.mark.parametrize(
    "opener", ["What is HPOS?", "Explain how grep works", "How does it work?", "Why did the test fail?"]
)
def test_answer_precedence_a_question_pattern_without_external_references_is_answer(opener: str) -> None:
    assert decide(opener).mode is ANSWER


@pytest.mark.parametrize("text", ["Should I use tabs?", "Do you want tea?"])
def test_should_i_and_do_you_want_are_question_patterns(text: str) -> None:
    assert decide(text).mode is ANSWER


def test_why_did_a_file_fail_is_action_because_it_has_a_file_path() -> None:
    assert decide("Why did tests/e2e/test.ts fail?").mode is ACTION


@pytest.mark.parametrize("extension", ["ts", "md", "js", "py", "json", "yml", "yaml", "tsx", "jsx"])
def test_file_extensions_are_action_triggers(extension: str) -> None:
    assert decide(f"what is in notes.{extension}?").mode is ACTION
    assert names(f"what is in notes.{extension}?") == [f"notes.{extension}"]


@pytest.mark.parametrize("path", ["src/", "/etc/hosts", "~/notes", "./run", "../up"])
def test_path_indicators_are_action_triggers(path: str) -> None:
    assert decide(f"what is in {path} ?").mode is ACTION


def test_fix_the_src_index_ts_file_is_action() -> None:
    assert names("fix the src/index.ts file") == ["fix", "src/index.ts"]


@pytest.mark.parametrize(
    "keyword",
    ("fix debug implement create update delete refactor test search find grep locate run execute deploy start stop "  # noqa: SIM905
     "restart remember save store recall note fetch download scrape browse").split(),
)  # fmt: skip
def test_keywords_are_action_triggers(keyword: str) -> None:
    found = decide(f"{keyword} the widget")
    assert found.mode is ACTION
    assert [trigger.name for trigger in found.triggers] == [keyword]
    assert found.triggers[0].rule.startswith("keyword.")


def test_look_for_is_an_action_trigger() -> None:
    assert decide("look for the widget").mode is ACTION


@pytest.mark.parametrize("url", ["http://x.y/z", "https://example.org", "example.com", "crates.io", "web.dev", "a.org"])
def test_web_references_are_action_triggers(url: str) -> None:
    assert decide(f"what is on {url}").mode is ACTION


def test_code_blocks_are_action_triggers() -> None:
    assert decide("what does this print?\n```\nprint(1)\n```").mode is ACTION


@pytest.mark.parametrize("reference", ["the codebase", "this repo", "our repository", "this project", "our code"])
def test_code_references_are_action_triggers(reference: str) -> None:
    assert decide(f"how is logging done in {reference}?").mode is ACTION


@pytest.mark.parametrize("text", ["fix the E2E tests", "search for similar implementations", "create a new file"])
def test_the_examples_of_action_triggers(text: str) -> None:
    assert decide(text).mode is ACTION


def test_neither_a_question_nor_a_trigger_is_answer_by_default() -> None:
    assert decide("a quiet afternoon by the lake").mode is ANSWER


def test_three_or_more_triggers_are_strong() -> None:
    text = "fix the bug in src/api/auth.ts and update tests"
    assert names(text) == ["fix", "src/api/auth.ts", "update", "tests"]
    assert decide(text).confidence is Confidence.STRONG


def test_one_or_two_triggers_are_weak() -> None:
    assert names("search for examples") == ["search"]
    assert decide("search for examples").confidence is Confidence.WEAK
    assert decide("search the codebase for auth").confidence is Confidence.WEAK


def test_answer_has_no_confidence_and_no_triggers() -> None:
    found = decide("What is the difference between HPOS and classic?")
    assert (found.mode, found.confidence, found.triggers) == (ANSWER, Confidence.NONE, ())


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("delete the old files", PlanningTrigger.DESTRUCTIVE),
        ("drop the users table", PlanningTrigger.DESTRUCTIVE),
        ("remove the backup", PlanningTrigger.DESTRUCTIVE),
        ("truncate the logs table", PlanningTrigger.DESTRUCTIVE),
        ("overwrite the database dump", PlanningTrigger.DESTRUCTIVE),
        ("deploy the service", PlanningTrigger.DEPLOYMENT),
        ("publish the package", PlanningTrigger.DEPLOYMENT),
        ("release the new version", PlanningTrigger.DEPLOYMENT),
        ("push the hotfix to prod", PlanningTrigger.DEPLOYMENT),
        ("push it to main", PlanningTrigger.DEPLOYMENT),
        ("change the auth flow", PlanningTrigger.SECURITY),
        ("update the token check", PlanningTrigger.SECURITY),
        ("update the password hashing", PlanningTrigger.SECURITY),
        ("move the secret elsewhere", PlanningTrigger.SECURITY),
        ("rotate the API key", PlanningTrigger.SECURITY),
        ("add a credential", PlanningTrigger.SECURITY),
    ],
)
def test_high_stakes_planning_triggers(text: str, trigger: PlanningTrigger) -> None:
    found = decide(text)
    assert (found.debate, found.stakes) == (Debate.PLANNING, Stakes.HIGH)
    assert trigger in [reason.trigger for reason in found.reasons]


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("rename all variables", PlanningTrigger.BULK),
        ("replace tabs by spaces in every file", PlanningTrigger.BULK),
        ("reformat the entire module", PlanningTrigger.BULK),
        ("chmod 644 *.html", PlanningTrigger.BULK),
        ("fix something", PlanningTrigger.AMBIGUOUS_SCOPE),
    ],
)
def test_medium_stakes_planning_triggers(text: str, trigger: PlanningTrigger) -> None:
    found = decide(text)
    assert (found.debate, found.stakes) == (Debate.PLANNING, Stakes.MEDIUM)
    assert [reason.trigger for reason in found.reasons] == [trigger]


@pytest.mark.parametrize("text", ["search for the token", "list all files", "cat /etc/hosts", "grep -i secret src/"])
def test_read_only_operations_are_never_debated(text: str) -> None:
    found = decide(text)
    assert (found.mode, found.debate, found.bypass) == (ACTION, Debate.NONE, Bypass.READ_ONLY)


@pytest.mark.parametrize("text", ["pwd", "date", "whoami", "echo done", "ping example.com"])
def test_trivial_commands_go_to_the_tool_specialist_on_the_fast_path(text: str) -> None:
    found = decide(text)
    assert (found.route, found.fast_path, found.bypass) == (RouteTarget.TOOL_SPECIALIST, True, Bypass.TRIVIAL)
    assert found.debate is Debate.NONE


@pytest.mark.parametrize("words", ["just do it", "skip confirmation", "I'm sure"])
def test_the_user_can_skip_the_debate_but_not_the_stakes(words: str) -> None:
    found = decide(f"{words}: delete the old snapshots")
    assert (found.debate, found.bypass, found.stakes) == (Debate.NONE, Bypass.USER_OVERRIDE, Stakes.HIGH)


def test_a_task_already_debated_this_session_is_not_debated_again() -> None:
    found = decide("drop the users table", already_debated=True)
    assert (found.debate, found.bypass, found.stakes) == (Debate.NONE, Bypass.ALREADY_DEBATED, Stakes.HIGH)


def test_answer_is_never_debated() -> None:
    found = decide("should I delete all files and drop the table?")
    assert (found.mode, found.debate, found.stakes, found.bypass) == (ANSWER, Debate.NONE, Stakes.NONE, None)


def test_action_without_planning_trigger_proceeds_without_debate() -> None:
    found = decide("add a test")
    assert (found.mode, found.debate, found.bypass) == (ACTION, Debate.NONE, None)


def test_how_do_i_find_files_with_grep_is_answer() -> None:
    assert decide("How do I find files with grep?").mode is ANSWER


def test_find_all_ts_files_in_src_is_action() -> None:
    found = decide("Find all .ts files in src/")
    assert (found.mode, found.confidence) == (ACTION, Confidence.STRONG)


def test_what_is_in_the_src_config_json_file_is_action() -> None:
    assert decide("What is in the src/config.json file?").mode is ACTION


def test_action_is_routed_to_the_swarm_and_answer_to_a_direct_response() -> None:
    assert decide("fix the build").route is RouteTarget.SWARM_ORCHESTRATOR
    assert decide("what is a build?").route is RouteTarget.DIRECT_RESPONSE


def test_the_decision_is_deterministic() -> None:
    assert decide("fix the bug in src/a.py") == decide("fix the bug in src/a.py")
