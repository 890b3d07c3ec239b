"""The user's own criteria: every plan contains them unchanged, whichever planner made it."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from pointsman.services.orchestrator.domain.model import Criterion, GivenCriterion, Plan


def written(given: GivenCriterion) -> dict[str, Any]:
    """A given criterion as it stands in a plan's document."""
    return {
        "id": given.criterion_id,
        "statement": given.statement,
        "verifyCommand": list(given.command),
        "required": given.required,
        "testFiles": list(given.test_files),
    }


def outlined(given: GivenCriterion) -> Criterion:
    """What acceptance needs to know of it."""
    return Criterion(given.criterion_id, given.required, bool(given.command), given.test_files)


def insist(plan: Plan, given: Sequence[GivenCriterion], accepted: Collection[str]) -> Plan:
    """The plan with every given criterion in it as it was given; what the planner left out goes to its last task."""
    if not given:
        return plan
    document = json.loads(plan.document)
    tasks: list[dict[str, Any]] = document["tasks"]
    by_id = {item.criterion_id: item for item in given}
    named = {criterion["id"] for task in tasks for criterion in _criteria_of(task)}
    for task in tasks:
        mine = _criteria_of(task)
        task["acceptanceCriteria"] = [written(by_id[one["id"]]) if one["id"] in by_id else one for one in mine]
    last = _last_task(tasks, accepted)
    last["acceptanceCriteria"] += [written(item) for item in given if item.criterion_id not in named]
    outlines = tuple(
        replace(outline, criteria=tuple(_outline(one) for one in task["acceptanceCriteria"]))
        for outline, task in zip(plan.tasks, tasks, strict=True)
    )
    return replace(plan, tasks=outlines, document=json.dumps(document, ensure_ascii=False))


def _criteria_of(task: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = task.get("acceptanceCriteria", [])
    return found


def _last_task(tasks: Sequence[dict[str, Any]], accepted: Collection[str]) -> dict[str, Any]:
    """The last task that still has to be done and that no other waits for."""
    awaited = {task_id for task in tasks for task_id in task.get("depends", ())}
    ahead = [task for task in tasks if task["id"] not in accepted] or tasks
    return next((task for task in reversed(ahead) if task["id"] not in awaited), ahead[-1])


def _outline(written_one: dict[str, Any]) -> Criterion:
    return Criterion(
        written_one["id"],
        required=written_one.get("required", False),
        has_command=bool(written_one.get("verifyCommand")),
        test_files=tuple(written_one.get("testFiles", ())),
    )
