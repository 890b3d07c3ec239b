"""How an event changes an entry; the same function rebuilds it from its journal."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from pointsman.services.chassis.core.machine import Event
from pointsman.services.orchestrator.domain.landing.commands import HeldUp, Landed, Merged, Split
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryState
from pointsman.services.orchestrator.domain.landing.events import Enqueued, Linked, LinkOver, Said, Taken
from pointsman.services.orchestrator.domain.landing.model import (
    Below,
    Candidate,
    Entry,
    Finding,
    Link,
    Proposal,
    split,
)


def apply(entry: Entry | None, event: Event, at: datetime) -> Entry:
    """Fold one event."""
    if entry is None:
        data: Enqueued = event.data
        first = Entry(data.entry_id, EntryState.QUEUED, data.queue_id, data.terms, data.work.run_id, data.work, at)
        return replace(first, stack=data.stack)
    stays = event.name == EntryEvent.TAKEN
    moved = replace(entry, status=EntryState(event.target), held_up=entry.held_up if stays else "")
    change = _CHANGES.get(EntryEvent(event.name), _found)
    return change(moved, event.data)


def _taken(entry: Entry, data: Taken) -> Entry:
    return replace(entry, epoch=data.epoch, agent_id=data.agent_id, principal=data.principal, rounds=entry.rounds + 1)


def _proven(entry: Entry, data: Candidate) -> Entry:
    return replace(entry, candidate=data, finding=None)


def _landed(entry: Entry, data: Landed | Merged) -> Entry:
    return replace(entry, landed_commit=data.commit)


def _base_moved(entry: Entry, _data: Any) -> Entry:
    return replace(entry, candidate=None)


def _proposed(entry: Entry, data: Proposal) -> Entry:
    return replace(entry, proposal=data)


def _split(entry: Entry, data: Split) -> Entry:
    return split(entry, data.layers)


def _held_up(entry: Entry, data: HeldUp) -> Entry:
    return replace(entry, held_up=data.text)


def _restacked(entry: Entry, data: Below) -> Entry:
    assert entry.stack is not None, "the table has it for layers only"
    return replace(entry, stack=replace(entry.stack, on=data), candidate=None)


def _orphaned(entry: Entry, data: Finding) -> Entry:
    return replace(_restacked(entry, Below()), finding=data)


def _found(entry: Entry, data: Finding) -> Entry:
    return replace(entry, finding=data, candidate=None)


def _linked(entry: Entry, data: Linked) -> Entry:
    kind = entry.finding.kind if entry.finding else EntryEvent.CONFLICTED
    link = Link(data.run_id, kind, resolver=entry.next_is_resolvers)
    return replace(entry, links=(*entry.links, link))


def _link_failed(entry: Entry, data: LinkOver) -> Entry:
    return replace(entry, links=ended_links(entry, data))


def _resolved(entry: Entry, data: LinkOver) -> Entry:
    """The work takes the place of what was there; its changes start where that stood when something was found."""
    work, floor = data.work or entry.work, entry.finding.floor if entry.finding else ""
    return replace(entry, links=ended_links(entry, data), work=replace(work, floor=floor), approved=False)


def ended_links(entry: Entry, data: LinkOver) -> tuple[Link, ...]:
    """The linked runs, with how one of them ended and what it spent."""
    ended = partial(replace, outcome=data.outcome, tokens=data.tokens, cost_micros=data.cost_micros)
    return tuple(ended(link) if link.run_id == data.run_id else link for link in entry.links)


def _answered(entry: Entry, _data: Said) -> Entry:
    return entry


def _approved(entry: Entry, _data: Said) -> Entry:
    return replace(entry, approved=True)


def _ended(entry: Entry, data: Said) -> Entry:
    return replace(entry, end_reason=data.text)


_CHANGES: Mapping[EntryEvent, Callable[[Entry, Any], Entry]] = {
    EntryEvent.TAKEN: _taken,
    EntryEvent.PROVEN: _proven,
    EntryEvent.LANDED: _landed,
    EntryEvent.MERGED: _landed,
    EntryEvent.BASE_MOVED: _base_moved,
    EntryEvent.PROPOSED: _proposed,
    EntryEvent.LINKED: _linked,
    EntryEvent.SPLIT: _split,
    EntryEvent.HELD_UP: _held_up,
    EntryEvent.RESTACKED: _restacked,
    EntryEvent.ORPHANED: _orphaned,
    EntryEvent.RESOLVED: _resolved,
    EntryEvent.LINK_FAILED: _link_failed,
    EntryEvent.RETRIED: _answered,
    EntryEvent.APPROVED: _approved,
    EntryEvent.REJECTED: _ended,
    EntryEvent.CANCELLED: _ended,
}
"""All others carry a finding."""
