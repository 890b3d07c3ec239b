"""Reads a file of tasks in whichever format it has: ours, spec-kit's, beads', GitHub's or task-master's."""

from collections.abc import Mapping
from typing import Any

from pointsman._shared.strict_json import JsonError, decode
from pointsman.services.chassis.core.errors import Violation, invalid_field
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.formats.beads_issues import is_beads, read_beads, write_beads
from pointsman.services.workflow.formats.github_issues import is_github, read_github
from pointsman.services.workflow.formats.spec_kit_tasks import is_spec_kit, read_spec_kit, write_spec_kit
from pointsman.services.workflow.formats.task_master_tasks import (
    is_task_master,
    read_task_master,
    write_task_master,
)
from pointsman.services.workflow.formats.tasks_file import TasksFile
from pointsman.services.workflow.formats.tasks_markdown import has_tasks, read_file

FORMATS = (
    "'## T1: name' headings (ours), '- [ ] T001 …' lines (spec-kit), one issue a line (beads' issues.jsonl), "
    "`gh issue list --json …`, task-master's tasks.json"
)


def read_any(text: str, tag: str = "") -> TasksFile:
    """The tasks of a file, whose format is recognised by its content; a tag is one of task-master's."""
    if tag and _task_master(text) is None:
        return TasksFile((), (), (Violation("tag", "only task-master's tasks.json has tags; leave --tag out"),))
    if text.lstrip()[:1] in ("[", "{"):
        return _read_json(text, tag)
    if not has_tasks(text) and is_spec_kit(text):
        return read_spec_kit(text)
    return read_file(text)


def with_statuses(text: str, statuses: Mapping[str, TaskStatus], tag: str = "") -> tuple[str, int]:
    """The file with the state of each task, and how many changed; refused where the format has none that we write."""
    if (value := _task_master(text)) is not None:
        return write_task_master(value, text, statuses, tag)
    if tag:
        raise invalid_field("tag", "only task-master's tasks.json has tags; leave --tag out")
    if is_beads(text):
        return _counted(text, write_beads(text, statuses))
    if not has_tasks(text) and is_spec_kit(text):
        return _counted(text, write_spec_kit(text, statuses))
    formats = "spec-kit's tasks.md, beads' issues.jsonl and task-master's tasks.json"
    raise invalid_field("file", f"states are written into {formats} only")


def _counted(before: str, after: str) -> tuple[str, int]:
    """With how many lines changed: one for each task."""
    return after, sum(old != new for old, new in zip(before.splitlines(), after.splitlines(), strict=True))


def _task_master(text: str) -> Any:
    """A file of task-master; None for any other."""
    try:
        value = decode(text) if text.lstrip()[:1] == "{" else None
    except JsonError:
        return None
    return value if is_task_master(value) else None


def _read_json(text: str, tag: str) -> TasksFile:
    if is_beads(text):
        return read_beads(text)
    try:
        value = decode(text)
    except JsonError as error:
        return _unreadable(error.problem)
    if is_github(value):
        return read_github(value, text)
    if is_task_master(value):
        return read_task_master(value, text, tag)
    return _unreadable(f"is JSON without tasks that are known here; known are {FORMATS}")


def _unreadable(problem: str) -> TasksFile:
    return TasksFile((), (), (Violation("markdown", problem),))
