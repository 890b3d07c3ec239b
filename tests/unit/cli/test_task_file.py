"""A file of tasks as the plan of a run: open tasks only, and words from a tracker are marked."""

from pathlib import Path

import pytest

from pointsman.cli.session.task_file import plan_from_file

PLANS = Path(__file__).parents[2] / "data" / "plans"


@pytest.mark.parametrize(
    ("folder", "untrusted"), [("spec_kit", False), ("beads", True), ("github", True), ("task_master", True)]
)
def test_every_task_of_a_tracker_is_untrusted_up_to_the_plan(folder: str, untrusted: bool) -> None:
    for path in sorted((PLANS / folder).iterdir()):
        plan = plan_from_file(path)
        assert plan.tasks
        assert {task.untrusted for task in plan.tasks} == {untrusted}
        ids = {task.id for task in plan.tasks}
        assert all(name in ids for task in plan.tasks for name in task.depends)
