"""One command, one decision: who may say what of an entry, and the machine that the chassis runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.errors import Reason, Refusal, not_found, state_forbids
from pointsman.services.chassis.core.machine import Decision, Effect, Event, Machine
from pointsman.services.orchestrator.domain.landing import commands, events
from pointsman.services.orchestrator.domain.landing.apply import apply, ended_links
from pointsman.services.orchestrator.domain.landing.enums import (
    QUESTIONS,
    SETBACKS,
    TERMINAL,
    EntryEvent,
    EntryReply,
    EntryState,
)
from pointsman.services.orchestrator.domain.landing.messages import link_message
from pointsman.services.orchestrator.domain.landing.model import Candidate, Entry, Finding, Proposal
from pointsman.services.orchestrator.domain.landing.stacking import TELL_ABOVE, layer_above, require_layers
from pointsman.services.orchestrator.domain.landing.table import events_from, row_for

KIND = "entry"
START_LINK = "landing.start_run"
"""The effect that starts a linked run."""
_HELD = (EntryState.PROVING, EntryState.LANDING)
_NEED_LINK = (*SETBACKS, EntryEvent.LINK_FAILED)
_REPORTED: Mapping[type, EntryEvent] = {
    Candidate: EntryEvent.PROVEN,
    commands.Landed: EntryEvent.LANDED,
    commands.BaseMoved: EntryEvent.BASE_MOVED,
    commands.Merged: EntryEvent.MERGED,
    Proposal: EntryEvent.PROPOSED,
    commands.Split: EntryEvent.SPLIT,
    commands.HeldUp: EntryEvent.HELD_UP,
}
_REPLIES = {
    EntryReply.RETRY: EntryEvent.RETRIED,
    EntryReply.APPROVE: EntryEvent.APPROVED,
    EntryReply.REJECT: EntryEvent.REJECTED,
}


@dataclass(frozen=True, slots=True)
class StartLink:
    """Start the linked run of this number, on the terms of the run whose work is to land."""

    number: int
    run_id: str
    intent: str
    base_commit: str
    max_tokens: int = 0
    max_cost_micros: int = 0
    """What it may spend; 0 means no limit."""
    resolver: bool = False
    """Whether it is for a resolver."""


def decide(entry: Entry | None, command: Any, now: datetime) -> Decision:
    """What a command leads to, or why it is refused."""
    if isinstance(command, commands.Enqueue):
        return _enqueue(entry, command)
    if isinstance(command, commands.PutLayer):
        return _put_layer(entry, command, now)
    if entry is None:
        raise not_found(KIND, command.entity_id)
    return _HANDLERS[type(command)](entry, command, now)


def _enqueue(entry: Entry | None, command: commands.Enqueue) -> Decision:
    if entry is not None:
        metadata = {"kind": KIND, "id": entry.entry_id}
        raise Refusal(Reason.ALREADY_EXISTS, "there is an entry with this id", metadata=metadata)
    data = events.Enqueued(command.entity_id, command.queue_id, command.terms, command.work)
    event = Event(str(EntryEvent.ENQUEUED), "", str(EntryState.QUEUED), data)
    return Decision([event], commands.EntryAck(command.entity_id, str(EntryState.QUEUED)))


def _moved(entry: Entry, name: EntryEvent, data: Any, now: datetime) -> Decision:
    """The transition of the table, and the linked run that it asks for."""
    row = row_for(entry, name)
    if row is None:
        raise _refusal(entry, f"an entry that is {entry.status} cannot be '{name}'")
    event = Event(str(name), str(row.source), str(row.target), data)
    after = apply(entry, event, now)
    effects = [_start_link(after)] if row.target is EntryState.WAITING and name in _NEED_LINK else []
    if after.ended or name is EntryEvent.PROPOSED:
        effects += [Effect(TELL_ABOVE, layer) for layer in layer_above(after)]
    return Decision([event], commands.EntryAck(entry.entry_id, str(after.status)), effects, drop_effects=after.ended)


def _put_layer(entry: Entry | None, command: commands.PutLayer, now: datetime) -> Decision:
    """A layer comes into being, or learns what it goes onto now; one that has ended learns nothing any more."""
    if entry is None:
        data = events.Enqueued(command.entity_id, command.queue_id, command.terms, command.work, command.stack)
        first = Event(str(EntryEvent.ENQUEUED), "", str(EntryState.QUEUED), data)
        ack = commands.EntryAck(command.entity_id, str(EntryState.QUEUED))
        if not command.orphaned_by:
            return Decision([first], ack)
        orphaned = _orphaned(apply(None, first, now), command, now)
        return Decision([first, *orphaned.events], orphaned.answer)
    known = entry.stack.on if entry.stack is not None else None
    if entry.ended or (known == command.on and not command.orphaned_by):
        return Decision([], commands.EntryAck(entry.entry_id, str(entry.status)))
    if command.orphaned_by:
        return _orphaned(entry, command, now)
    return _moved(entry, EntryEvent.RESTACKED, command.on, now)


def _orphaned(entry: Entry, command: commands.PutLayer, now: datetime) -> Decision:
    text = (
        f"the layer below it, {command.stack.below_id}, is {command.orphaned_by}: answer `retry` to land this one "
        "without it, or `reject`"
    )
    return _moved(entry, EntryEvent.ORPHANED, Finding(EntryEvent.ORPHANED, text), now)


def _start_link(entry: Entry) -> Effect:
    finding = entry.finding
    assert finding is not None, "an entry waits because something was found"
    base = finding.base or entry.work.commit
    limits = (entry.tokens_left if entry.terms.max_tokens else 0, entry.cost_left if entry.terms.max_cost_micros else 0)
    number, message = len(entry.links) + 1, link_message(entry, finding)
    data = StartLink(number, entry.run_id, message, base, *limits, resolver=entry.next_is_resolvers)
    return Effect(START_LINK, data)


def _take(entry: Entry, command: commands.Take, now: datetime) -> Decision:
    if command.epoch < entry.epoch or (command.epoch == entry.epoch and entry.status in _HELD):
        raise _lost(entry)
    return _moved(entry, EntryEvent.TAKEN, events.Taken(command.epoch, command.agent_id, command.principal), now)


def _report(entry: Entry, command: commands.ReportEntry, now: datetime) -> Decision:
    is_stale = command.epoch < entry.epoch or (command.epoch != entry.epoch and entry.status in _HELD)
    if is_stale or (entry.status in _HELD and command.principal != entry.principal):
        raise _lost(entry)
    report = command.report
    if isinstance(report, commands.Landed):
        _require_proven(entry, report)
    if isinstance(report, commands.Split):
        require_layers(entry, report)
    if isinstance(report, commands.HeldUp) and report.text == entry.held_up:
        return Decision([], commands.EntryAck(entry.entry_id, str(entry.status)))
    name = report.kind if isinstance(report, Finding) else _REPORTED[type(report)]
    if isinstance(report, Finding) and name not in (*SETBACKS, *QUESTIONS):
        raise _refusal(entry, f"'{name}' is no finding")
    return _moved(entry, name, report, now)


def _require_proven(entry: Entry, report: commands.Landed) -> None:
    """Only what was proven lands."""
    if entry.candidate is None or report.commit != entry.candidate.tip:
        raise _refusal(entry, f"{report.commit[:12]} is not the commit that was proven")


def _link_started(entry: Entry, command: commands.LinkStarted, now: datetime) -> Decision:
    return _moved(entry, EntryEvent.LINKED, events.Linked(command.run_id), now)


def _link_refused(entry: Entry, command: commands.LinkRefused, now: datetime) -> Decision:
    return _moved(entry, EntryEvent.BLOCKED, Finding(EntryEvent.BLOCKED, command.reason), now)


def _link_ended(entry: Entry, command: commands.LinkEnded, now: datetime) -> Decision:
    """What follows from a linked run's end; one that the entry does not wait for any more changes nothing."""
    link = entry.open_link
    if entry.status is not EntryState.WAITING or link is None or link.run_id != command.run_id:
        return Decision([], commands.EntryAck(entry.entry_id, str(entry.status)))
    over = events.LinkOver(command.run_id, command.outcome, command.work, command.tokens, command.cost_micros)
    counted = replace(entry, links=ended_links(entry, over))  # whether another run may start depends on what it spent
    return _moved(counted, EntryEvent.RESOLVED if command.work else EntryEvent.LINK_FAILED, over, now)


def _answer(entry: Entry, command: commands.AnswerEntry, now: datetime) -> Decision:
    return _moved(entry, _REPLIES[command.reply], events.Said(command.text), now)


def _cancel(entry: Entry, command: commands.CancelEntry, now: datetime) -> Decision:
    return _moved(entry, EntryEvent.CANCELLED, events.Said(command.reason), now)


def _refusal(entry: Entry, message: str) -> Refusal:
    allowed = tuple(str(event) for event in events_from(entry.status))
    return state_forbids(KIND, entry.entry_id, str(entry.status), allowed, message)


def _lost(entry: Entry) -> Refusal:
    return Refusal(
        Reason.LEASE_LOST,
        f"the entry '{entry.entry_id}' is in other hands; take the queue again",
        metadata={"kind": KIND, "id": entry.entry_id, "epoch": str(entry.epoch)},
    )


_HANDLERS: Mapping[type, Callable[[Entry, Any, datetime], Decision]] = {
    commands.Take: _take,
    commands.ReportEntry: _report,
    commands.LinkStarted: _link_started,
    commands.LinkRefused: _link_refused,
    commands.LinkEnded: _link_ended,
    commands.AnswerEntry: _answer,
    commands.CancelEntry: _cancel,
}
MACHINE = Machine(
    kind=KIND,
    version=1,
    state_type=Entry,
    decide=decide,
    apply=apply,
    status=lambda entry: str(entry.status),
    run_id=lambda entry: entry.run_id,
    events=events.EVENTS,
    answers=commands.ANSWERS,
    terminal=frozenset(str(state) for state in TERMINAL),
    failed=frozenset({str(EntryState.REJECTED)}),
)
