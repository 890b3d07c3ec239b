"""What `pointsman run` cannot do is said before anything is submitted: exit 2, one line, no run."""

import json
from pathlib import Path

import pytest

from pointsman.worker.git import git
from tests.scenarios.commands import finished, finished_in

pytestmark = pytest.mark.timeout(150)
TASK = ("run", "fix the add function in calc.py")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--repo", "/no/such"), "there is no folder /no/such"),
        (("--repo", "{plain}"), "is in no git repository"),
        (("--repo", "{empty}"), "has no commit yet"),
        (("--pipeline", "nope"), "there is no pipeline 'nope'; known are full, "),
        (("--command", "x 'y"), "--command cannot be read"),
        (("--command", "cat", "--agent", "claude"), "--agent and --command both name the agent"),
        (("--command", "no-such-agent"), "the agent's program 'no-such-agent' is not there"),
    ],
    ids=["no folder", "no repository", "no commit", "no pipeline", "no command line", "two agents", "no program"],
)
async def test_what_cannot_be_is_said_before_anything_is_submitted(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    await git(tmp_path, "init", "-q", "empty")
    filled = [option.format(plain=tmp_path / "plain", empty=tmp_path / "empty") for option in options]
    code, output = finished(*TASK, *filled, POINTSMAN_DATA=str(tmp_path / "data"))
    assert (code, len(output.splitlines())) == (2, 1), output
    assert words in output


def test_work_that_needs_a_repository_is_refused_where_there_is_none(tmp_path: Path) -> None:
    code, output = finished_in(tmp_path, *TASK, POINTSMAN_DATA=str(tmp_path / "data"))
    assert (code, len(output.splitlines())) == (2, 1), output
    assert "the work needs a git repository, and here is none" in output


def test_a_message_that_asks_for_no_run_is_answered_as_json_where_that_is_wanted(tmp_path: Path) -> None:
    code, output = finished("run", "what is a barrier?", "--json", POINTSMAN_DATA=str(tmp_path / "data"))
    assert code == 0, output
    events = [json.loads(line) for line in output.splitlines() if not line.startswith(("proof: ", "left out"))]
    assert [(event["run"], event["mode"]) for event in events] == [(None, "ANSWER")]
