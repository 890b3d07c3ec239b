"""The machine of an entry as data: one list of rows drives the decisions, the page and the tests."""

from collections.abc import Callable
from dataclasses import dataclass

from pointsman.services.orchestrator.domain.landing.enums import LIVE, SETBACKS, TERMINAL, EntryEvent, EntryState
from pointsman.services.orchestrator.domain.landing.model import Entry


@dataclass(frozen=True, slots=True)
class EntryGuard:
    """A condition on an entry, with the name that is printed."""

    name: str
    holds: Callable[[Entry], bool]


ALWAYS = EntryGuard("", lambda _entry: True)
LINKS_LEFT = EntryGuard("runs and budget left", lambda entry: entry.has_links_left)
LAYERED = EntryGuard("in a stack", lambda entry: entry.stack is not None)
WAS_BLOCKED = EntryGuard("it was blocked", lambda entry: entry.is_blocked and entry.stack is not None)
UNSPLIT = EntryGuard("a stack is wanted", lambda entry: entry.terms.stack and entry.stack is None)


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One transition."""

    source: EntryState
    event: EntryEvent
    target: EntryState
    guard: EntryGuard = ALWAYS


def _setbacks(source: EntryState, *events: EntryEvent) -> tuple[EntryRow, ...]:
    """A linked run while there are some left, then a person."""
    return tuple(
        row
        for event in events
        for row in (
            EntryRow(source, event, EntryState.WAITING, LINKS_LEFT),
            EntryRow(source, event, EntryState.ASKED),
        )
    )


_S, _E = EntryState, EntryEvent
ROWS: tuple[EntryRow, ...] = (
    EntryRow(_S.QUEUED, _E.TAKEN, _S.PROVING),
    EntryRow(_S.PROVING, _E.TAKEN, _S.PROVING),
    EntryRow(_S.LANDING, _E.TAKEN, _S.LANDING),
    EntryRow(_S.PROVING, _E.PROVEN, _S.LANDING),
    EntryRow(_S.LANDING, _E.LANDED, _S.LANDED),
    EntryRow(_S.LANDING, _E.PROPOSED, _S.PROPOSED),
    *(EntryRow(state, _E.BASE_MOVED, _S.QUEUED) for state in (_S.PROVING, _S.LANDING, _S.PROPOSED)),
    *(EntryRow(state, _E.HELD_UP, state) for state in (_S.PROVING, _S.LANDING, _S.PROPOSED)),
    EntryRow(_S.PROVING, _E.SPLIT, _S.PROVING, UNSPLIT),
    *(EntryRow(state, _E.RESTACKED, _S.QUEUED, LAYERED) for state in (_S.QUEUED, _S.PROVING, _S.LANDING, _S.PROPOSED)),
    EntryRow(_S.WAITING, _E.RESTACKED, _S.WAITING, LAYERED),
    EntryRow(_S.ASKED, _E.RESTACKED, _S.QUEUED, WAS_BLOCKED),
    EntryRow(_S.ASKED, _E.RESTACKED, _S.ASKED, LAYERED),
    *(EntryRow(state, _E.ORPHANED, _S.ASKED, LAYERED) for state in LIVE),
    *_setbacks(_S.PROVING, _E.CONFLICTED, _E.PROOF_FAILED),
    *_setbacks(_S.PROPOSED, *SETBACKS),
    EntryRow(_S.PROVING, _E.PROOF_ASKS, _S.ASKED),
    *(EntryRow(state, _E.BLOCKED, _S.ASKED) for state in (_S.PROVING, _S.LANDING, _S.PROPOSED, _S.WAITING)),
    EntryRow(_S.PROPOSED, _E.CLOSED, _S.ASKED),
    EntryRow(_S.WAITING, _E.LINKED, _S.WAITING),
    EntryRow(_S.WAITING, _E.RESOLVED, _S.QUEUED),
    EntryRow(_S.WAITING, _E.LINK_FAILED, _S.WAITING, LINKS_LEFT),
    EntryRow(_S.WAITING, _E.LINK_FAILED, _S.ASKED),
    EntryRow(_S.ASKED, _E.RETRIED, _S.QUEUED),
    EntryRow(_S.ASKED, _E.APPROVED, _S.QUEUED),
    EntryRow(_S.ASKED, _E.REJECTED, _S.REJECTED),
    *(EntryRow(state, _E.MERGED, _S.LANDED) for state in LIVE),
    *(EntryRow(state, _E.CANCELLED, _S.CANCELLED) for state in LIVE if state is not _S.LANDING),
)
"""An entry that is being pushed cannot be cancelled: nobody could say whether it landed."""


def row_for(entry: Entry, event: EntryEvent) -> EntryRow | None:
    """The first row for an event whose guard holds."""
    rows = (row for row in ROWS if row.source is entry.status and row.event is event)
    return next((row for row in rows if row.guard.holds(entry)), None)


def events_from(state: EntryState) -> tuple[EntryEvent, ...]:
    """The events that a state knows."""
    return tuple(dict.fromkeys(row.event for row in ROWS if row.source is state))


def mermaid() -> str:
    """The table as a Mermaid state diagram; what a live entry can always meet is drawn once."""
    lines = ["stateDiagram-v2", f"  [*] --> {_S.QUEUED}: {_E.ENQUEUED}"]
    for row in ROWS:
        if row.event not in (_E.MERGED, _E.ORPHANED, _E.CANCELLED):
            label = f"{row.event} [{row.guard.name}]" if row.guard.name else str(row.event)
            lines.append(f"  {row.source} --> {row.target}: {label}")
    lines += [
        "  state any_live <<choice>>",
        f"  any_live --> {_S.LANDED}: {_E.MERGED}",
        f"  any_live --> {_S.ASKED}: {_E.ORPHANED} [{LAYERED.name}]",
        f"  any_live --> {_S.CANCELLED}: {_E.CANCELLED} [not LANDING]",
    ]
    lines += [f"  {state} --> [*]" for state in EntryState if state in TERMINAL]
    return "\n".join(lines) + "\n"
