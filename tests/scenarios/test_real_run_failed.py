"""A run that fails, with real processes: what its command says, and how its work is taken up again."""

import json
from pathlib import Path

import pytest

from tests.helpers.hello_repository import example_repository
from tests.scenarios.commands import finished, open_gate
from tests.scenarios.test_real_run_terminal import greeting_on, terminal

pytestmark = pytest.mark.timeout(240)


async def failed(tmp_path: Path) -> tuple[Path, dict[str, str], str]:
    """A repository, its environment and a run on it that has failed with exit code 1."""
    folder, data = await example_repository(tmp_path), {"POINTSMAN_DATA": str(tmp_path / "data")}
    arguments = greeting_on(folder, tmp_path / "gate")
    open_gate(tmp_path / "gate")
    code, output = finished(*arguments, "--budget", "transitions=20", **data)
    assert code == 1, output
    assert "FAILED" in output
    assert "the limit of 20 transitions is reached" in output
    return folder, data, next(word for word in output.split() if word.startswith("run_"))


async def test_a_run_that_failed_says_why_and_stays_failed(tmp_path: Path) -> None:
    _, data, run_id = await failed(tmp_path)
    code, output = finished("show", run_id, "--json", **data)
    assert code == 0, output
    assert json.loads(output)["state"] == "RUN_STATE_FAILED"
    code, output = finished("cancel", run_id, **data)
    assert code == 1, output
    assert "the event 'cancel' is not for a run in FAILED" in output


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
async def test_unfinished_work_is_asked_about_at_the_terminal_before_anything_new_is_begun(tmp_path: Path) -> None:
    folder, _, _ = await failed(tmp_path)
    with terminal(*greeting_on(folder, tmp_path / "gate"), data=tmp_path / "data") as shown:
        shown.wait_for("There is unfinished work. Resume it first?")
        shown.wait_for("resume_yes, resume_no?")
        shown.type("resume_yes\n")
        shown.wait_for("in words")
        shown.type("\n")
        code = shown.wait()
    assert code == 0, shown.text
    assert "COMPLETE" in shown.text
