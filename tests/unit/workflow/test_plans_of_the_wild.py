"""Twenty files of each foreign format, in the manner of the wild: nothing is lost, and reading them again is the same."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.formats.tasks_file import TasksFile
from pointsman.services.workflow.formats.tasks_reader import read_any, with_statuses

PLANS = Path(__file__).parents[2] / "data" / "plans"
BOX = re.compile(r"^[-*] \[([ xX])\] \**(T\d{3})\**:? ((?:\[\w+\] )*)(.*)$", re.MULTILINE)
HIDDEN = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)


def files(folder: str) -> list[Any]:
    return [pytest.param(path.read_bytes().decode(), id=path.name) for path in sorted((PLANS / folder).iterdir())]


def read(text: str) -> TasksFile:
    found = read_any(text)
    assert found.problems == ()
    ids = [task.spec.task_id for task in found.tasks]
    assert len(ids) == len(set(ids)) == len(found.places)
    assert all(name in ids for task in found.tasks for name in task.spec.depends), "nobody waits for what is not there"
    return found


def by_id(found: TasksFile) -> dict[str, PlannedTask]:
    return {task.spec.task_id: task for task in found.tasks}


def all_text(task: PlannedTask) -> str:
    """Everything that is stored of a task, in one piece: a long text goes on where the field before it ends."""
    spec = task.spec
    rest = "".join(spec.actions[1:])
    return "\n".join((spec.name, spec.phase, spec.requirement + rest, spec.leverage, spec.design_ref, *spec.files))


def test_there_are_twenty_files_of_each_format() -> None:
    counts = {folder.name: len(list(folder.iterdir())) for folder in PLANS.iterdir()}
    assert counts == {"spec_kit": 20, "beads": 20, "github": 20, "task_master": 20}


@pytest.mark.parametrize("text", files("spec_kit"))
def test_a_spec_kit_file_keeps_ids_states_stories_marks_and_paths(text: str) -> None:
    found = read(text)
    tasks = by_id(found)
    shown = BOX.findall(HIDDEN.sub("", text.replace("\r\n", "\n")))
    assert [one[1] for one in shown] == list(tasks)
    assert not found.from_tracker
    before = ""
    for box, task_id, marks, said in shown:
        task = tasks[task_id]
        assert (task.status is TaskStatus.COMPLETED) == (box in "xX")
        assert task.spec.name == said
        assert task.spec.phase
        assert all(story in task.spec.requirement for story in re.findall(r"US\d", marks))
        assert all(
            path.strip("`") in task.spec.files for path in re.findall(r"\S+/\S+\.\w+", said) if "/api/" not in path
        )
        assert all(name in task.spec.depends for name in re.findall(r"T\d{3}", said))
        if before and "[P]" not in marks:
            assert task.spec.depends, "what has no mark comes after something"
        before = task_id


def beads_issues(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.strip():
            yield json.loads(line)


@pytest.mark.parametrize("text", files("beads"))
def test_a_beads_file_keeps_ids_states_texts_and_dependencies(text: str) -> None:
    found = read(text)
    tasks, issues = by_id(found), list(beads_issues(text))
    epics = {one["id"] for one in issues if one["issue_type"] == "epic"}
    live = [one for one in issues if one["status"] != "tombstone" and one["id"] not in epics]
    assert [one["id"] for one in live] == list(tasks)
    assert found.from_tracker
    for one in live:
        task, stored = tasks[one["id"]], all_text(tasks[one["id"]])
        texts = [one.get(name, "") for name in ("title", "description", "design", "acceptance_criteria", "notes")]
        texts += [comment["text"] for comment in one.get("comments", ())] + one.get("labels", []) + [one["issue_type"]]
        assert [said for said in texts if said.strip() not in stored] == []
        assert (task.status is TaskStatus.COMPLETED) == (one["status"] == "closed")
        assert task.spec.priority == one["priority"]
        for link in one.get("dependencies", ()):
            if link["type"] == "blocks" and link["depends_on_id"] not in epics:
                assert link["depends_on_id"] in (*task.spec.depends, *task.spec.blocked_by)
            if link["type"] == "parent-child":
                assert task.spec.phase


@pytest.mark.parametrize("text", files("github"))
def test_a_list_of_github_issues_keeps_numbers_states_bodies_and_blockers(text: str) -> None:
    found = read(text)
    tasks, issues = by_id(found), json.loads(text)
    assert [f"gh-{one['number']}" for one in issues] == list(tasks)
    assert found.from_tracker
    for one in issues:
        task = tasks[f"gh-{one['number']}"]
        stored = all_text(task)
        texts = [one["title"], (one.get("body") or "").strip(), *(label["name"] for label in one["labels"])]
        assert [said for said in texts if said not in stored] == []
        settled = task.status in (TaskStatus.COMPLETED, TaskStatus.SKIPPED)
        assert settled == (one["state"] == "CLOSED")
        named = [*_refs(one.get("subIssues")), *_refs(one.get("blockedBy"))]
        for other in named:
            waits = (*task.spec.depends, *task.spec.blocked_by)
            assert f"gh-{other['number']}" in waits or other["state"] == "CLOSED"


def _refs(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (value.get("nodes", []) if isinstance(value, dict) else value) or []
    return found


@pytest.mark.parametrize("text", files("task_master"))
def test_a_task_master_file_keeps_ids_states_details_and_order(text: str) -> None:
    found = read(text)
    tasks, value = by_id(found), json.loads(text)
    tags = {"master": value} if "tasks" in value else value
    listed = tags.get("master", next(iter(tags.values())))["tasks"]
    expected = {str(one["id"]): one for one in listed}
    expected |= {f"{one['id']}.{sub['id']}": sub for one in listed for sub in one.get("subtasks", ())}
    assert set(tasks) == set(expected)
    assert found.from_tracker
    for task_id, one in expected.items():
        task = tasks[task_id]
        texts = [one.get(name, "") for name in ("title", "description", "details", "testStrategy")]
        assert [said for said in texts if said.strip() not in all_text(task)] == []
        assert (task.status is TaskStatus.COMPLETED) == (one["status"] == "done")
        if "." not in task_id:
            assert all(str(other) in task.spec.depends for other in one["dependencies"])


EVERY = [one for folder in ("spec_kit", "beads", "task_master") for one in files(folder)]


@pytest.mark.parametrize("text", [*EVERY, *files("github")])
def test_reading_a_file_again_gives_the_same_tasks(text: str) -> None:
    assert read_any(text) == read_any(text)


@pytest.mark.parametrize("text", EVERY)
def test_states_are_written_back_once_and_read_as_they_were_written(text: str) -> None:
    done = {task.spec.task_id: TaskStatus.COMPLETED for task in read(text).tasks}
    written, _ = with_statuses(text, done)
    assert with_statuses(written, done) == (written, 0)
    again = read(written)
    assert {task.spec.task_id: task.status for task in again.tasks} == done
    assert [task.spec.name for task in again.tasks] == [task.spec.name for task in read(text).tasks]
    assert with_statuses(written, {}) == (written, 0)
