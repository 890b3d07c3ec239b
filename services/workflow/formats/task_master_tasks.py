"""Reads task-master's tasks.json: tasks with subtasks, below a tag or at the top."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pointsman.services.chassis.core.errors import Violation
from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.tasks_file import MAX_NAME, TasksFile, records_of, split_text, text_of, unique

MASTER = "master"
STATUSES = {
    "done": TaskStatus.COMPLETED,
    "completed": TaskStatus.COMPLETED,
    "cancelled": TaskStatus.SKIPPED,
    "deferred": TaskStatus.BLOCKED,
    "blocked": TaskStatus.BLOCKED,
}
"""All others are still to be done."""
WRITTEN = {TaskStatus.COMPLETED: "done", TaskStatus.SKIPPED: "cancelled"}
PRIORITIES = {"critical": 0, "high": 1, "medium": 2, "low": 3}


def is_task_master(value: Any) -> bool:
    """Whether this is a tasks.json."""
    return isinstance(value, Mapping) and bool(_tags(value))


def read_task_master(value: Mapping[str, Any]) -> TasksFile:
    """Read as far as possible, with every problem by its place."""
    tags = _tags(value)
    tag = MASTER if MASTER in tags else next(iter(tags))
    if len(tags) > 1 and tag != MASTER:
        listed = ", ".join(sorted(tags))
        return TasksFile((), (), (Violation("markdown", f"has several tags ({listed}); give a file with one of them"),))
    tasks, places, problems = [], [], []
    for place, record in enumerate(tags[tag]):
        for where, one in _with_subtasks(record, f"{tag}.tasks[{place}]"):
            if not text_of(one, "title") or not _id(one):
                problems.append(Violation(where, "a task has an id and a title"))
                continue
            tasks.append(_planned(one))
            places.append(where)
    if not tasks and not problems:
        problems.append(Violation("markdown", "there is no task"))
    return TasksFile(tuple(tasks), tuple(places), tuple(problems), from_tracker=True)


def write_task_master(value: Mapping[str, Any], statuses: Mapping[str, TaskStatus]) -> str:
    """The file with the states of settled tasks and subtasks; nothing else changes but white space."""
    tags = _tags(value)
    for task in tags[MASTER if MASTER in tags else next(iter(tags))]:
        own = _id(task)
        for one, name in ((task, own), *((child, f"{own}.{_id(child)}") for child in records_of(task.get("subtasks")))):
            settled = WRITTEN.get(statuses.get(name, TaskStatus.PENDING))
            if settled and isinstance(one, dict) and STATUSES.get(text_of(one, "status").lower()) is not statuses[name]:
                one["status"] = settled
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _tags(value: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The lists of tasks by tag; a list at the top is the master's."""
    if isinstance(value.get("tasks"), list):
        return {MASTER: records_of(value["tasks"])}
    return {
        name: records_of(one["tasks"])
        for name, one in value.items()
        if isinstance(one, Mapping) and isinstance(one.get("tasks"), list)
    }


def _with_subtasks(task: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The subtasks of a task, then the task, which depends on them; subtasks wait for what the task waits for."""
    own, before = _id(task), _ids(task.get("dependencies"), "")
    children = records_of(task.get("subtasks"))
    for place, child in enumerate(children):
        depends = [*before, *_ids(child.get("dependencies"), own)]
        yield f"{where}.subtasks[{place}]", {**child, "id": f"{own}.{_id(child)}", "depends": depends, "phase": task}
    yield where, {**task, "id": own, "depends": [*before, *(f"{own}.{_id(child)}" for child in children)]}


def _planned(task: Mapping[str, Any]) -> PlannedTask:
    title, parent = text_of(task, "title"), task.get("phase")
    parts = [text for name in ("description", "details", "testStrategy") if (text := text_of(task, name))]
    requirement, rest = split_text("\n".join(parts))
    status = STATUSES.get(text_of(task, "status").lower(), TaskStatus.PENDING)
    spec = TaskSpec(
        str(task["id"]),
        title[:MAX_NAME],
        text_of(parent, "title")[:100] if isinstance(parent, Mapping) else "",
        actions=(title[:MAX_NAME], *rest),
        depends=unique(one for one in task["depends"] if one != task["id"]),
        blocked_by=(text_of(task, "status").lower(),) if status is TaskStatus.BLOCKED else (),
        requirement=requirement,
        priority=PRIORITIES.get(text_of(task, "priority").lower(), 0),
    )
    return PlannedTask(spec, status)


def _id(record: Mapping[str, Any]) -> str:
    value = record.get("id")
    return str(value).strip() if isinstance(value, int | str) else ""


def _ids(value: Any, parent: str) -> list[str]:
    """Ids of other tasks; a bare number in a subtask names its sibling."""
    listed = value if isinstance(value, list) else []
    ids = [str(one).strip() for one in listed if isinstance(one, int | str)]
    return [f"{parent}.{one}" if parent and "." not in one else one for one in ids]
