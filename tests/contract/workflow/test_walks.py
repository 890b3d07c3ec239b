"""Random walks given to the service and to the rules written down by hand: they must agree after every command."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.workflow.__main__ import MIGRATIONS
from pointsman.services.workflow.config import WorkflowSettings
from pointsman.services.workflow.servicer import WorkflowServicer
from pointsman.services.workflow.store import WorkflowStore
from tests.contract.workflow.requests import Asker
from tests.contract.workflow.rulings import Rulings
from tests.contract.workflow.stage_rulings import Refused
from tests.contract.workflow.walks import Command, Walker

WALKS = int(os.environ.get("POINTSMAN_WORKFLOW_WALKS", "32"))
FIRST = int(os.environ.get("POINTSMAN_WORKFLOW_FIRST_WALK", "1"))
STEPS = 40
STEPS_AFTER_THE_END = 3
AT_ONCE = 16
A_PROJECTS_WALKS = 8
LISTED = 5


@pytest.mark.timeout(60 + WALKS)
async def test_the_service_agrees_with_the_rules_after_every_command(database_url: str) -> None:
    database = Database(database_url, "workflow")
    migrate(database, MIGRATIONS)
    workflows = WorkflowStore(database)
    workflows.store.hub.bind()
    servicer = WorkflowServicer(workflows, WorkflowSettings())
    seeds = iter(range(FIRST, FIRST + WALKS))

    async def some(number: int) -> None:
        """Walks of one project, one after the other: what can be resumed of it is known at any time."""
        changed: list[tuple[str, Rulings]] = []
        for seed in seeds:
            project = f"project-{number}-{len(changed) // A_PROJECTS_WALKS}"
            changed.insert(0, (f"w{seed}", Rulings()))
            here = changed[: (len(changed) - 1) % A_PROJECTS_WALKS + 1]
            await walk(Walker(seed), here, Asker(servicer, project, f"w{seed}"))

    try:
        await asyncio.gather(*(some(number) for number in range(AT_ONCE)))
    finally:
        workflows.store.close()


async def walk(walker: Walker, changed: Sequence[tuple[str, Rulings]], asker: Asker) -> None:
    """The life of the workflow that changed last; what was asked so far is told when the two come to differ."""
    workflow_id, rulings = changed[0]
    told: list[str] = [f"{workflow_id}, {walker.temper}"]
    left = STEPS_AFTER_THE_END
    for _ in range(STEPS):
        command = walker.next(rulings)
        told.append(f"{rulings.status}: {command}")
        expected, found = ruled(rulings, command), await answered(asker, command)
        assert found == expected, "\n".join(told)
        if rulings.status != "none":
            assert await asker.seen() == as_ruled(rulings), "\n".join(told)
            found = await asker.resumable(LISTED)
            shown = [(one.workflow_id, one.executable, one.priority, one.waits_for) for one in found]
            assert shown == listed(changed, found), "\n".join(told)
        left -= rulings.status == "completed"
        if not left:
            return


def ruled(rulings: Rulings, command: Command) -> Any:
    """What the rules answer."""
    kind, fields = command
    try:
        return getattr(rulings, kind)(**fields)
    except Refused as refusal:
        return f"refused: {refusal}"


async def answered(asker: Asker, command: Command) -> Any:
    """What the service answers."""
    kind, fields = command
    try:
        return await getattr(asker, kind)(**fields)
    except Refusal as refusal:
        return f"refused: {refusal.reason}"


def listed(changed: Sequence[tuple[str, Rulings]], found: Sequence[Any]) -> list[Any]:
    """What a run could take up: executable ones first, then by priority, then the latest change; in words that fit."""
    waiting = [(workflow_id, one) for workflow_id, one in changed if one.standing.resumable(one.status)]
    waiting.sort(key=lambda entry: (not entry[1].executable(), entry[1].standing.priority))
    told = [entry.waits_for for entry in found] + [""] * LISTED
    return [
        (workflow_id, one.executable(), one.standing.priority, words if words in one.waits_for() else one.waits_for())
        for (workflow_id, one), words in zip(waiting[:LISTED], told, strict=False)
    ]


def as_ruled(rulings: Rulings) -> dict[str, Any]:
    """Everything that a reader may see of a workflow, as the rules have it."""
    return {
        "status": rulings.status,
        "pause": rulings.pause_cause,
        "pause_names": rulings.pause_names,
        "warnings": rulings.warnings(),
        "tasks": {
            own_id: (task["state"], rulings.open_dependencies(own_id), task["retries"], task["attempt"])
            for own_id, task in rulings.tasks.items()
        },
        "ready": len(rulings.ready()),
        "consecutive": (rulings.consecutive, rulings.limit()),
        "unblocked": rulings.unblocked,
        "blocking": rulings.blocking(),
        "constraints": rulings.held.shown(),
        "risks": rulings.risks,
        "audited": rulings.audited,
        "settings": {**rulings.settings, "subagent": rulings.subagents()},
        "context": {"tokens": rulings.context.tokens, "history": rulings.context.history, **rulings.context.limits},
        "owner": rulings.standing.owner,
    }
