"""Reads beads' issues.jsonl: one issue a line, with dependencies; an epic is the phase of its children."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pointsman._shared.strict_json import JsonError, decode
from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.tasks_file import (
    MAX_NAME,
    Problems,
    TasksFile,
    records_of,
    split_text,
    text_of,
    unique,
)

BLOCKING = frozenset({"blocks", "conditional-blocks", "waits-for"})
PARENT = "parent-child"
DELETED = "tombstone"
CLOSED = "closed"
ON_HOLD = {"deferred": "deferred", "pinned": "pinned", "hooked": "hooked", "blocked": "blocked"}
"""States that somebody outside has to end, by the name of what blocks the task."""
TEXTS = ("description", "design", "acceptance_criteria", "notes", "external_ref", "assignee", "close_reason")


@dataclass(frozen=True, slots=True)
class _Issue:
    """One line."""

    line: int
    record: Mapping[str, Any]

    @property
    def issue_id(self) -> str:
        return text_of(self.record, "id")

    @property
    def status(self) -> str:
        return text_of(self.record, "status") or "open"

    def linked(self, kinds: frozenset[str]) -> list[str]:
        """The ids that it depends on in one of these ways."""
        found = records_of(self.record.get("dependencies"))
        mine = [one for one in found if text_of(one, "issue_id") in ("", self.issue_id)]
        return [text_of(one, "depends_on_id") for one in mine if (text_of(one, "type") or "blocks") in kinds]


def is_beads(text: str) -> bool:
    """Whether the first line is an issue of beads."""
    try:
        first = decode(next((line for line in text.splitlines() if line.strip()), ""))
    except JsonError:
        return False
    return isinstance(first, dict) and {"id", "title"} <= first.keys()


def read_beads(text: str) -> TasksFile:
    """Read as far as possible, with every problem by its line."""
    problems = Problems()
    issues = [issue for issue in _issues(text, problems) if issue.status != DELETED]
    parents = {issue.issue_id: parent for issue in issues for parent in issue.linked(frozenset({PARENT}))[:1]}
    epics = {parent for parent in parents.values() if parent in {issue.issue_id for issue in issues}}
    titles = {issue.issue_id: text_of(issue.record, "title") for issue in issues}
    work = [issue for issue in issues if issue.issue_id not in epics]
    tree = _Tree(parents, epics, titles, frozenset(issue.issue_id for issue in work))
    tasks = tuple(_planned(issue, tree) for issue in work)
    if not tasks:
        problems.add(1, "there is no issue to work on")
    places = tuple(f"markdown:{issue.line}" for issue in work)
    return TasksFile(tasks, places, tuple(problems.found), from_tracker=True)


def write_beads(text: str, statuses: Mapping[str, TaskStatus]) -> str:
    """The file with the states of settled issues; lines of other issues stay as they are."""
    lines = text.splitlines(keepends=True)
    for issue in _issues(text, Problems()):
        if statuses.get(issue.issue_id) in (TaskStatus.COMPLETED, TaskStatus.SKIPPED) and issue.status != CLOSED:
            changed = {**issue.record, "status": CLOSED}
            lines[issue.line - 1] = json.dumps(changed, ensure_ascii=False, separators=(",", ":")) + "\n"
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class _Tree:
    """How issues belong together."""

    parents: Mapping[str, str]
    epics: set[str]
    titles: Mapping[str, str]
    work: frozenset[str]

    def tasks_of(self, issue_id: str) -> Sequence[str]:
        """The issue itself; of an epic, its children."""
        if issue_id not in self.epics:
            return (issue_id,)
        return [child for child, parent in self.parents.items() if parent == issue_id and child in self.work]


def _issues(text: str, problems: Problems) -> list[_Issue]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = decode(line)
        except JsonError as error:
            problems.add(number, error.problem)
            continue
        if not isinstance(record, dict) or not text_of(record, "id") or not text_of(record, "title"):
            problems.add(number, "an issue is an object with an id and a title")
            continue
        found.append(_Issue(number, record))
    return found


def _planned(issue: _Issue, tree: _Tree) -> PlannedTask:
    record, own = issue.record, issue.issue_id
    wanted = unique(one for linked in issue.linked(BLOCKING) for one in tree.tasks_of(linked))
    outside = [one for one in wanted if one not in tree.work]
    title = text_of(record, "title")
    parts = [f"{name.replace('_', ' ').capitalize()}: {text}" for name in TEXTS if (text := text_of(record, name))]
    parts += [f"{text_of(one, 'author')} says: {text_of(one, 'text')}" for one in records_of(record.get("comments"))]
    parts += [title] if len(title) > MAX_NAME else []
    requirement, rest = split_text("\n".join(parts))
    labels = record.get("labels")
    marks = [text_of(record, "issue_type"), *(labels if isinstance(labels, list) else ())]
    priority = record.get("priority")
    depends = tuple(one for one in wanted if one in tree.work and one != own)
    held = (ON_HOLD[issue.status],) if issue.status in ON_HOLD and not depends else ()
    spec = TaskSpec(
        own,
        title[:MAX_NAME],
        tree.titles.get(tree.parents.get(own, ""), "")[:100],
        actions=(title[:MAX_NAME], *rest),
        depends=depends,
        blocked_by=(*held, *outside),
        leverage=", ".join(str(mark) for mark in marks if mark)[:2000],
        requirement=requirement,
        priority=priority if isinstance(priority, int) and 0 <= priority <= 1000 else 0,
    )
    return PlannedTask(spec, _status(issue, blocked=bool(spec.blocked_by)))


def _status(issue: _Issue, *, blocked: bool) -> TaskStatus:
    if issue.status == CLOSED:
        return TaskStatus.COMPLETED
    return TaskStatus.BLOCKED if blocked else TaskStatus.PENDING
