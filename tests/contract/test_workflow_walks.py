"""Random walks given to the service and to the rules written down by hand: they must agree after every command."""

import asyncio
import os
from typing import Any

import pytest

from pointsman.services.chassis.db import Database
from pointsman.services.chassis.migrate import migrate
from pointsman.services.chassis.refusals import Refusal
from pointsman.services.workflow.__main__ import MIGRATIONS
from pointsman.services.workflow.config import WorkflowSettings
from pointsman.services.workflow.servicer import WorkflowServicer
from pointsman.services.workflow.store import WorkflowStore
from tests.contract.workflow_requests import Asker
from tests.contract.workflow_rulings import Refused, Rulings
from tests.contract.workflow_walks import Command, Walker, inferred

WALKS = int(os.environ.get("POINTSMAN_WORKFLOW_WALKS", "32"))
FIRST = int(os.environ.get("POINTSMAN_WORKFLOW_FIRST_WALK", "1"))
STEPS = 40
STEPS_AFTER_THE_END = 3
AT_ONCE = 32


@pytest.mark.timeout(60 + WALKS)
async def test_the_service_agrees_with_the_rules_after_every_command(database_url: str) -> None:
    database = Database(database_url, "workflow")
    migrate(database, MIGRATIONS)
    workflows = WorkflowStore(database)
    workflows.store.hub.bind()
    servicer = WorkflowServicer(workflows, WorkflowSettings())
    seeds = iter(range(FIRST, FIRST + WALKS))

    async def some() -> None:
        for seed in seeds:
            await walk(servicer, seed)

    try:
        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    finally:
        workflows.store.close()


async def walk(servicer: WorkflowServicer, seed: int) -> None:
    """One workflow's life; what was asked so far is told when the two come to differ."""
    walker, rulings, asker = Walker(seed), Rulings(inferred), Asker(servicer, f"w{seed}")
    told: list[str] = [f"seed {seed}, {walker.temper}"]
    left = STEPS_AFTER_THE_END
    for _ in range(STEPS):
        command = walker.next(rulings)
        told.append(f"{rulings.status}: {command}")
        expected, found = ruled(rulings, command), await answered(asker, command)
        assert found == expected, "\n".join(told)
        if rulings.status != "none":
            assert await asker.seen() == as_ruled(rulings), "\n".join(told)
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


def as_ruled(rulings: Rulings) -> dict[str, Any]:
    """Everything that a reader may see of a workflow, as the rules have it."""
    return {
        "status": rulings.status,
        "pause": rulings.pause_cause,
        "tasks": {
            own_id: (task["state"], rulings.open_dependencies(own_id), task["retries"], task["attempt"])
            for own_id, task in rulings.tasks.items()
        },
        "ready": len(rulings.ready()),
        "consecutive": (rulings.consecutive, rulings.limit()),
        "unblocked": rulings.unblocked,
        "blocking": {one for own_id in rulings.in_state("blocked") for one in rulings.tasks[own_id]["blocked_by"]}
        - rulings.unblocked,
        "unmet": {own_id for own_id, met in rulings.constraints.items() if not met},
    }
