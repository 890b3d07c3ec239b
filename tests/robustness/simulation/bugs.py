"""Planted bugs: each breaks one promise in the code under test, and the simulation has to find it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from pointsman.services.chassis.engine.batch import Batch
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.chassis.engine.outbox import OutboxBatch, OutboxStatements
from pointsman.services.orchestrator.domain import apply, completion, ending, machine
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, Table
from pointsman.services.orchestrator.domain.enums import Call
from pointsman.services.orchestrator.domain.run import Lease
from pointsman.services.orchestrator.domain.table import TABLE
from pointsman.services.orchestrator.loops import Engine
from pointsman.services.orchestrator.store.queue import Queue


def _replace(owner: Any, name: str, other: Any) -> None:
    assert hasattr(owner, name), f"{owner} has no {name}: the bug would not be planted"
    setattr(owner, name, other)


def forget_answers() -> None:
    """Answers are not kept: a command that is sent twice happens twice."""
    write = Batch.write

    def forgetful(batch: Any, connection: Any) -> None:
        batch._answer_rows.clear()
        write(batch, connection)

    _replace(Batch, "write", forgetful)


def new_key_for_each_delivery() -> None:
    """An effect without idempotency: each delivery looks like another request."""
    numbers = count(1)
    _replace(
        PendingEffect,
        "effect_id",
        property(lambda effect: f"{effect.entity_id}:{effect.seq}:{effect.number}:{next(numbers)}"),
    )


def deliver_from_memory() -> None:
    """Effects are handed over without being written: who dies forgets them."""
    build = OutboxStatements.__init__

    class Nothing:
        def run(self, _connection: Any, _rows: Any) -> None:
            """Write nothing."""

    def build_without(statements: Any, store: Any) -> None:
        build(statements, store)
        statements.insert_effects = Nothing()

    _replace(OutboxStatements, "__init__", build_without)


def acknowledge_nothing() -> None:
    """What was delivered stays in the outbox."""
    _replace(OutboxBatch, "acknowledge", lambda _self, _item: None)


def ignore_the_epoch() -> None:
    """Whoever once had the lease may hand in."""

    def anybody(builder: DecisionBuilder, command: Any) -> Any:
        assignment = builder.run.assignments.get(command.assignment_id)
        lease = builder.leases.get(command.assignment_id)
        if assignment is None or lease is None:
            raise completion.lease_lost(command.assignment_id, "gone")
        return assignment, lease

    _replace(completion, "_leased", anybody)


def ignore_the_secret() -> None:
    """Whoever knows the assignment, the epoch and the agent may hand in."""
    held = Lease.is_held_by

    def known(lease: Lease, *named: Any) -> bool:
        return held(replace(lease, secret_digests=()), *named)

    _replace(Lease, "is_held_by", known)


def fold_something_else() -> None:
    """The fold reads something beside the event."""
    numbers = count(1)
    called = apply._called

    def counted(run: Any, data: Any) -> Any:
        return called(run, data).change(queue_checks=next(numbers))

    apply._APPLY[next(kind for kind, made in apply._APPLY.items() if made is called)] = counted  # type: ignore[index]


def keep_lost_leases() -> None:
    """A lease that ran out is nobody else's."""
    _replace(Queue, "ran_out", lambda _self, _connection, _kind, _over: [])


def sweep_never() -> None:
    """Nobody looks for assignments whose last lease ran out."""

    async def asleep(_engine: Engine) -> None:
        await asyncio.Event().wait()

    _replace(Engine, "sweep", asleep)


def leave_pipelines_behind() -> None:
    """A run that stops lets its pipelines go on."""
    send = DecisionBuilder.send

    def silent(builder: DecisionBuilder, call: Call, request: Any) -> None:
        if call is not Call.CANCEL_PIPELINE:
            send(builder, call, request)

    _replace(DecisionBuilder, "send", silent)


def let_nothing_go() -> None:
    """A run that ends keeps its epic."""
    release = ending.release_or_cancel_workflow
    rows = (replace(row, actions=tuple(a for a in row.actions if a is not release)) for row in TABLE.rows)
    _replace(machine, "TABLE", Table(rows))


BUGS: Mapping[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        forget_answers, new_key_for_each_delivery, deliver_from_memory, acknowledge_nothing, ignore_the_epoch,
        ignore_the_secret, fold_something_else, keep_lost_leases, sweep_never, leave_pipelines_behind,
        let_nothing_go,
    )
}  # fmt: skip
