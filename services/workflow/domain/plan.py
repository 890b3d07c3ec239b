"""Validates plans, reporting every problem at once, and merges them with the stored tasks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pointsman.services.chassis.core.errors import Violation
from pointsman.services.workflow.domain.commands import PlannedTask, UpsertPlan
from pointsman.services.workflow.domain.dependency_classes import classify_dependencies
from pointsman.services.workflow.domain.enums import ALL_DEPENDENCIES, SETTLED_TASKS, TaskStatus, WorkflowMode
from pointsman.services.workflow.domain.model import TOTAL, Header, Workflow
from pointsman.services.workflow.domain.tasks import Task, TaskSpec

MAX_TASKS = 200_000
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_DEPENDENCY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_BAD_PATH = re.compile(r"[\x00-\x1f\\]|^/|^~|^[A-Za-z]:|^\s*$")


def problems(state: Workflow | None, command: UpsertPlan) -> tuple[Violation, ...]:
    """All problems of a plan, by task and field."""
    return (*command.unreadable, *_problems(state, command))


def is_safe_path(path: str) -> bool:
    """Whether a path is relative and stays below its folder."""
    return not _BAD_PATH.search(path) and ".." not in path.split("/")


def _problems(state: Workflow | None, command: UpsertPlan) -> Iterator[Violation]:
    specs = [planned.spec for planned in command.tasks]
    places = command.places or tuple(f"tasks[{index}]" for index in range(len(specs)))
    stored = _remaining_tasks(state, command)
    known = {spec.task_id for spec in specs} | set(stored)
    seen: set[str] = set(stored) if command.append else set()
    for place, spec in zip(places, specs, strict=True):
        if spec.task_id in seen:
            yield _violation(place, "task_id", spec, "this id is used twice; give each task its own")
        seen.add(spec.task_id)
        yield from _own_problems(place, spec)
        yield from _dependency_problems(place, spec, known)
    yield from _cycles(dict(zip(places, specs, strict=True)))
    if len(specs) + (state.header.counts[TOTAL] if state and command.append else 0) > MAX_TASKS:
        yield Violation("tasks", f"a workflow has at most {MAX_TASKS} tasks")


def _remaining_tasks(state: Workflow | None, command: UpsertPlan) -> Mapping[str, Task]:
    if state is None:
        return {}
    if command.append:
        return state.tasks.by_id
    return {task_id: task for task_id, task in state.tasks.by_id.items() if task.status in SETTLED_TASKS}


def _own_problems(place: str, spec: TaskSpec) -> Iterator[Violation]:
    if not _TASK_ID.fullmatch(spec.task_id):
        yield _violation(place, "task_id", spec, "must match ^[A-Za-z0-9][A-Za-z0-9_.-]*$, at most 64 characters")
    if not spec.name.strip():
        yield _violation(place, "name", spec, "must say what is to be done")
    for path in spec.files:
        if not is_safe_path(path):
            yield _violation(place, "files", spec, f"path '{path[:100]}' must be relative, with '/', without '..'")
    for dependency in spec.blocked_by:
        if dependency == ALL_DEPENDENCIES or not _DEPENDENCY.fullmatch(dependency):
            message = f"dependency '{dependency[:64]}' must match ^[A-Za-z0-9_.-]+$ and not be '{ALL_DEPENDENCIES}'"
            yield _violation(place, "blocked_by", spec, message)


def _dependency_problems(place: str, spec: TaskSpec, known: set[str]) -> Iterator[Violation]:
    for dependency in dict.fromkeys(spec.depends):
        if dependency not in known:
            yield _violation(place, "depends", spec, f"there is no task '{dependency[:64]}'")
    if len(set(spec.depends)) < len(spec.depends):
        yield _violation(place, "depends", spec, "names a task twice")


def _violation(place: str, field: str, spec: TaskSpec, message: str) -> Violation:
    return Violation(f"{place}.{field}", f"task '{spec.task_id[:64]}': {message}")


def _cycles(placed: Mapping[str, TaskSpec]) -> Iterator[Violation]:
    """One violation for each cycle, naming its tasks in order."""
    place_of: dict[str, str] = {}
    waits: dict[str, set[str]] = {}
    specs = {spec.task_id: spec for spec in placed.values()}
    for place, spec in placed.items():
        place_of.setdefault(spec.task_id, place)
        waits.setdefault(spec.task_id, set()).update(set(spec.depends) & specs.keys())
    while True:
        waits = _remove_acyclic(waits)
        if not waits:
            return
        cycle = _find_cycle(waits)
        first = cycle[0]
        yield _violation(place_of[first], "depends", specs[first], f"cycle {' → '.join([*cycle, first])}")
        for task_id in cycle:
            waits.pop(task_id, None)


def _remove_acyclic(waits: dict[str, set[str]]) -> dict[str, set[str]]:
    """Removes tasks without open dependencies until none is left to remove; the rest is in a cycle or depends on one."""
    dependants: dict[str, list[str]] = {}
    open_count = dict.fromkeys(waits, 0)
    for task_id, needed in waits.items():
        for dependency in needed:
            if dependency in waits:
                dependants.setdefault(dependency, []).append(task_id)
                open_count[task_id] += 1
    free = [task_id for task_id, count in open_count.items() if count == 0]
    while free:
        task_id = free.pop()
        del open_count[task_id]
        for dependant in dependants.get(task_id, ()):
            open_count[dependant] -= 1
            if open_count[dependant] == 0:
                free.append(dependant)
    return {task_id: {one for one in waits[task_id] if one in open_count} for task_id in open_count}


def _find_cycle(waits: dict[str, set[str]]) -> list[str]:
    """Follows dependencies until a task repeats: a cycle, starting with its first task in the plan."""
    order = {task_id: index for index, task_id in enumerate(waits)}
    path: dict[str, None] = {}
    here = next(iter(waits))
    while here not in path:
        path[here] = None
        here = min(waits[here], key=order.__getitem__)
    visited = list(path)
    cycle = visited[visited.index(here) :]
    start = cycle.index(min(cycle, key=order.__getitem__))
    return cycle[start:] + cycle[:start]


def tasks_to_store(state: Workflow, tasks: Sequence[PlannedTask]) -> tuple[Task, ...]:
    """The tasks of a plan as stored: settled ones unchanged, the others new."""
    return tuple(
        _task_to_store(state.header, planned, state.tasks.by_id.get(planned.spec.task_id)) for planned in tasks
    )


def _task_to_store(header: Header, planned: PlannedTask, stored: Task | None) -> Task:
    spec = _with_blockers(header, planned.spec)
    if stored is not None and stored.stub:
        return replace(
            new_task(header, spec, _stub_status(stored)), reason=stored.reason, retry_count=stored.retry_count
        )
    if stored is not None and stored.status in SETTLED_TASKS:
        return stored
    return replace(new_task(header, spec, planned.status), attempt=stored.attempt if stored else 0)


def _stub_status(stored: Task) -> TaskStatus | None:
    return None if stored.status in (TaskStatus.PENDING, TaskStatus.BLOCKED) else stored.status


def _with_blockers(header: Header, spec: TaskSpec) -> TaskSpec:
    """Explicit blockers always win; only progressive mode infers missing ones."""
    if spec.blocked_by or header.mode is not WorkflowMode.PROGRESSIVE:
        return spec
    return replace(spec, blocked_by=classify_dependencies(spec))


def new_task(header: Header, spec: TaskSpec, status: TaskStatus | None) -> Task:
    """A new task: settled or failed as given, else pending or blocked."""
    if status in (TaskStatus.COMPLETED, TaskStatus.SKIPPED, TaskStatus.FAILED):
        return Task(spec, status)
    blocked = any(dependency not in header.unblocked for dependency in spec.blocked_by)
    return Task(spec, TaskStatus.BLOCKED if blocked else TaskStatus.PENDING)
