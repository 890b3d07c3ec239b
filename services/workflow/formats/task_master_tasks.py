"""Reads task-master's tasks.json: tasks with subtasks, below a tag or at the top."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pointsman.services.chassis.core.errors import Violation, invalid_field
from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.json_places import JsonPlaces, Path
from pointsman.services.workflow.formats.tasks_file import (
    MAX_NAME,
    Problems,
    TasksFile,
    split_text,
    text_of,
    unique,
)

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


def read_task_master(value: Mapping[str, Any], text: str, tag: str = "") -> TasksFile:
    """Read the tasks of a tag as far as possible, with every problem by its line and field."""
    where = _tags(value)
    chosen = _chosen(where, tag)
    if chosen not in where:
        return TasksFile((), (), (_no_such_tag(where, tag),))
    places, problems = JsonPlaces(text), Problems()
    tasks, lines = [], []
    for path, one in _records(value, where[chosen], places, problems):
        tasks.append(_planned(one))
        lines.append(f"markdown:{places.line(path)}")
    if not tasks and not problems.found:
        problems.add(places.line(where[chosen]), f"there is no task below the tag '{chosen}'")
    return TasksFile(tuple(tasks), tuple(lines), tuple(problems.found), from_tracker=True)


def write_task_master(
    value: Mapping[str, Any], text: str, statuses: Mapping[str, TaskStatus], tag: str = ""
) -> tuple[str, int]:
    """The text with the states of settled tasks and subtasks of a tag, and how many changed; all else stays as it is."""
    where, places = _tags(value), JsonPlaces(text)
    chosen = _chosen(where, tag)
    if chosen not in where:
        problem = _no_such_tag(where, tag)
        raise invalid_field(problem.field, problem.description)
    edits = []
    for path, one in _records(value, where[chosen], places, Problems()):
        settled = WRITTEN.get(statuses.get(one["id"], TaskStatus.PENDING))
        if settled and STATUSES.get(text_of(one, "status").lower()) is not statuses[one["id"]]:
            edits.append(_edit(one, path, places, settled))
    for (begin, end), written in sorted(edits, reverse=True):
        text = text[:begin] + written + text[end:]
    return text, len(edits)


def _edit(task: Mapping[str, Any], path: Path, places: JsonPlaces, settled: str) -> tuple[tuple[int, int], str]:
    """Which characters to replace by what: the state, or the brace that opens a task without one."""
    if isinstance(task.get("status"), str):
        return places.span((*path, "status")), json.dumps(settled)
    return places.span(path), f'{{"status": {json.dumps(settled)}, '


def _chosen(tags: Mapping[str, Path], tag: str) -> str:
    """The tag that is meant: the named one, the only one, else the master."""
    return tag or (next(iter(tags)) if len(tags) == 1 else MASTER)


def _no_such_tag(tags: Mapping[str, Path], tag: str) -> Violation:
    listed = ", ".join(sorted(tags))
    if tag:
        return Violation("tag", f"'{tag}' is no tag of this file, which has {listed}")
    return Violation("tag", f"the file has no tag '{MASTER}'; name one that it has with --tag: {listed}")


def _tags(value: Mapping[str, Any]) -> dict[str, Path]:
    """Where the list of tasks of each tag is; a list at the top is the master's."""
    if isinstance(value.get("tasks"), list):
        return {MASTER: ("tasks",)}
    return {
        name: (name, "tasks")
        for name, one in value.items()
        if isinstance(one, Mapping) and isinstance(one.get("tasks"), list)
    }


def _records(
    value: Mapping[str, Any], path: Path, places: JsonPlaces, problems: Problems
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Every task of a list that can be read, each after its subtasks."""
    listed: Any = value
    for step in path:
        listed = listed[step]
    for index, task in enumerate(listed):
        place = (*path, index)
        if _is_readable(task, place, places, problems):
            yield from _with_subtasks(task, place, places, problems)


def _is_readable(record: Any, path: Path, places: JsonPlaces, problems: Problems) -> bool:
    """Whether a task has what it needs; else every field that is wrong is a problem."""
    if not isinstance(record, Mapping):
        problems.add(places.line(path), "a task is an object with an id and a title")
        return False
    wrong = list(_wrong_fields(record))
    for field, message in wrong:
        problems.add(places.line((*path, field)), f"{field}: {message}")
    return not wrong


def _wrong_fields(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not _id(record):
        yield "id", "a task has an id, which is a number or a text"
    if not text_of(record, "title"):
        yield "title", "a task has a title, which is a text"
    if not isinstance(record.get("status") or "", str):
        yield "status", "is a text such as pending or done"
    for field, message in (("dependencies", "is a list of ids"), ("subtasks", "is a list of tasks")):
        if not isinstance(record.get(field) or [], list):
            yield field, message
    others = record.get("dependencies")
    if isinstance(others, list) and not all(isinstance(one, int | str) for one in others):
        yield "dependencies", "has something that is no id: a number or a text"


def _with_subtasks(
    task: Mapping[str, Any], path: Path, places: JsonPlaces, problems: Problems
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The subtasks of a task, then the task, which depends on them; subtasks wait for what the task waits for."""
    own, before, names = _id(task), _ids(task.get("dependencies"), ""), []
    for index, child in enumerate(task.get("subtasks") or ()):
        place = (*path, "subtasks", index)
        if not _is_readable(child, place, places, problems):
            continue
        depends = [*before, *_ids(child.get("dependencies"), own)]
        names.append(f"{own}.{_id(child)}")
        yield place, {**child, "id": names[-1], "depends": depends, "phase": task}
    yield path, {**task, "id": own, "depends": [*before, *names]}


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
    ids = [str(one).strip() for one in value or ()]
    return [f"{parent}.{one}" if parent and "." not in one else one for one in ids]
