"""Reads GitHub issues as `gh issue list --json number,title,body,state,labels,…` prints them.

Sub-issues come before their parent, `blockedBy` before the blocked one; an open blocker outside the list blocks it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.json_places import JsonPlaces
from pointsman.services.workflow.formats.tasks_file import (
    MAX_NAME,
    Problems,
    TasksFile,
    records_of,
    split_text,
    text_of,
    unique,
)

WAY_OUT = "add --json number,title,body,state,labels,blockedBy,subIssues,parent to `gh issue list`"
NOT_DONE = frozenset({"NOT_PLANNED", "DUPLICATE"})
PRIORITY = re.compile(r"(?:priority[:/ ]*)?p([0-4])", re.IGNORECASE)


def is_github(value: Any) -> bool:
    """Whether this is a list of issues."""
    return isinstance(value, list) and any(isinstance(one, Mapping) and "number" in one for one in value)


def read_github(value: list[Any], text: str) -> TasksFile:
    """Read as far as possible, with every problem by its line and field."""
    places, problems, issues, lines = JsonPlaces(text), Problems(), [], []
    for index, one in enumerate(value):
        wrong = list(_wrong_fields(one))
        for field, message in wrong:
            problems.add(places.line((index, field)), f"{field}: {message}; {WAY_OUT}")
        if not wrong:
            issues.append(one)
            lines.append(f"markdown:{places.line((index,))}")
    known = {int(one["number"]) for one in issues}
    tasks = tuple(_planned(one, known) for one in issues)
    return TasksFile(tasks, tuple(lines), tuple(problems.found), from_tracker=True)


def _wrong_fields(issue: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(issue, Mapping):
        yield "number", "an issue is an object with a number and a title"
        return
    if not _is_number(issue):
        yield "number", "an issue has a number"
    if not text_of(issue, "title"):
        yield "title", "an issue has a title"
    for field in ("subIssues", "blockedBy", "labels"):
        if not isinstance(issue.get(field) or [], list | Mapping):
            yield field, "is a list"


def _planned(issue: Mapping[str, Any], known: set[int]) -> PlannedTask:
    own, title = int(issue["number"]), text_of(issue, "title")
    children = {int(one["number"]): one for one in records_of(issue.get("subIssues")) if _is_number(one)}
    blockers = {int(one["number"]): one for one in records_of(issue.get("blockedBy")) if _is_number(one)}
    before = {**children, **blockers}
    outside = [number for number, one in before.items() if number not in known and not _is_closed(one)]
    names = [text_of(label, "name") for label in records_of(issue.get("labels"))]
    requirement, rest = split_text(text_of(issue, "body"))
    milestone, parent = issue.get("milestone"), issue.get("parent")
    phase = next((text_of(one, "title") for one in (milestone, parent) if isinstance(one, Mapping)), "")
    spec = TaskSpec(
        f"gh-{own}",
        title[:MAX_NAME],
        phase[:100],
        actions=(title[:MAX_NAME], *rest),
        depends=unique(f"gh-{number}" for number in before if number in known and number != own),
        blocked_by=unique(f"gh-{number}" for number in outside),
        leverage=", ".join(names)[:2000],
        design_ref=text_of(issue, "url")[:2000],
        requirement=requirement,
        priority=next((int(found[1]) for name in names if (found := PRIORITY.fullmatch(name))), 0),
    )
    return PlannedTask(spec, _status(issue, blocked=bool(outside)))


def _status(issue: Mapping[str, Any], *, blocked: bool) -> TaskStatus:
    if _is_closed(issue):
        not_done = text_of(issue, "stateReason").upper() in NOT_DONE
        return TaskStatus.SKIPPED if not_done else TaskStatus.COMPLETED
    return TaskStatus.BLOCKED if blocked else TaskStatus.PENDING


def _is_number(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("number"), int) and not isinstance(record.get("number"), bool)


def _is_closed(record: Mapping[str, Any]) -> bool:
    return text_of(record, "state").upper() == "CLOSED"
