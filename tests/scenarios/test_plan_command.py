"""`pointsman plan`: it stops after the plan, a person edits and approves it, and only then is anything coded."""

import os
import sys
from pathlib import Path

import pytest

from pointsman.cli.commands import demo_agent
from pointsman.cli.commands.demo import example_repository
from tests.scenarios.commands import finished

pytestmark = pytest.mark.timeout(150)
AGENT = f"cmd:{sys.executable} -I {demo_agent.__file__}"
CREW = ("--planner", AGENT, "--coder", AGENT, "--reviewer", AGENT, "--no-baseline")
EDITOR = """\
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
plan = json.loads(path.read_text())
plan["tasks"] = plan["tasks"][:1]
path.write_text(json.dumps(plan))
"""


async def test_a_plan_waits_for_a_person_and_the_edited_one_is_what_is_done(tmp_path: Path) -> None:
    folder = await example_repository(tmp_path / "shops")
    editor = tmp_path / "editor.py"
    editor.write_text(EDITOR)
    where = {
        "POINTSMAN_DATA": str(tmp_path / "data"), "PATH": os.environ["PATH"], "EDITOR": f"{sys.executable} {editor}",
        "VISUAL": "",
    }  # fmt: skip
    asked = ("plan", "write the functions of the shop", "--repo", str(folder), *CREW)
    code, output = finished(*asked, **where)
    assert code == 4, output
    for words in (
        "T3  write receipt() (S), after T1, T2",
        "files  shop/price.py",
        "waits for your word about the plan",
    ):
        assert words in output
    assert "writes the code" not in output
    code, output = finished("plan", "apply", "last", str(editor), **where)
    assert (code, "plan.json" in output) == (2, True), output
    code, output = finished(*asked, "--edit", "--approve", **where)
    assert code == 0, output
    times = [line for line in output.splitlines() if line[2:3] == line[5:6] == ":"]
    assert len(times) == len(set(times)), "what was shown with the plan is not shown again"
    assert "T1 accepted by the verifier" in output
    assert "T2 accepted" not in output


async def test_a_plan_that_a_team_has_is_worked_through_without_a_planner(tmp_path: Path) -> None:
    folder = await example_repository(tmp_path / "shops")
    tasks = tmp_path / "tasks.md"
    tasks.write_text("## Phase 1\n- [x] T001 Think\n- [ ] T1 write price() in shop/price.py\n")
    where = {"POINTSMAN_DATA": str(tmp_path / "data"), "PATH": os.environ["PATH"]}
    asked = ("run", "write the functions of the shop", "--repo", str(folder), *CREW, "--tasks", str(tasks))
    code, output = finished(*asked, **where)
    assert code == 0, output
    assert "T1 accepted by the verifier" in output
    assert "T2" not in output, "the planner would have made three tasks"


def test_a_plan_without_open_tasks_is_refused_before_anything_is_submitted(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.md"
    tasks.write_text("- [x] T001 Done\n")
    code, output = finished("run", "do it", "--tasks", str(tasks), POINTSMAN_DATA=str(tmp_path / "data"))
    assert (code, "every task is done" in output) == (2, True), output
