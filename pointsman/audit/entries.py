"""Invariants of entries: no unproven tip, nothing lands twice, none is lost."""

from collections.abc import Iterator

from sqlalchemy import Connection

from pointsman.services.chassis.engine.audit import History, Violation
from pointsman.services.orchestrator.domain.landing.commands import Landed
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryState
from pointsman.services.orchestrator.domain.landing.machine import START_LINK
from pointsman.services.orchestrator.domain.landing.model import MAX_LINKS, Candidate, Entry
from pointsman.services.orchestrator.domain.landing.table import ROWS

MOVES = frozenset((str(row.source), str(row.event), str(row.target)) for row in ROWS)


class EntryProof:
    """Checks entries one by one, and that no work of a run is landed in a queue by two of them."""

    def __init__(self) -> None:
        self._landed: dict[tuple[str, str], str] = {}

    def __call__(self, _connection: Connection, history: History) -> Iterator[Violation]:
        """Every violation of one entry."""
        entry: Entry = history.state
        for step in history.steps[1:]:
            if (step.source, step.event, step.target) not in MOVES:
                yield history.violation("table", step.seq, f"{step.source} {step.event} is not in the table")
        yield from _tips(history)
        yield from _waits(history, entry)
        if entry.status is EntryState.LANDED:
            yield from self._once(history, entry)

    def _once(self, history: History, entry: Entry) -> Iterator[Violation]:
        is_own = any(event.name == EntryEvent.LANDED for event in history.events)
        key = (entry.queue_id, entry.work.commit)
        other = self._landed.setdefault(key, entry.entry_id) if is_own else entry.entry_id
        if other != entry.entry_id:
            yield history.violation("landing", history.row.version, f"its work was landed by {other} before")


def _tips(history: History) -> Iterator[Violation]:
    """What lands is the commit that was proven last, and was not taken back since."""
    proven: Candidate | None = None
    landed = 0
    for step, event in zip(history.steps, history.events, strict=True):
        if isinstance(event.data, Candidate):
            proven = event.data
        elif isinstance(event.data, Landed):
            landed += 1
            if proven is None or proven.tip != event.data.commit:
                yield history.violation("landing", step.seq, f"{event.data.commit[:12]} landed without a proof")
        elif step.target != EntryState.LANDING:
            proven = None
    if landed > 1:
        yield history.violation("landing", history.row.version, f"it landed {landed} times")


def _waits(history: History, entry: Entry) -> Iterator[Violation]:
    """An entry that waits has a linked run, or an effect that starts one."""
    version = history.row.version
    starts = any(effect.kind == START_LINK for effect in history.effects)
    if entry.status is EntryState.WAITING and entry.open_link is None and not starts:
        yield history.violation("waiting", version, "nobody works on what was found, and nobody is asked")
    if len(entry.links) > MAX_LINKS + entry.terms.resolver:
        yield history.violation("landing", version, f"{len(entry.links)} linked runs were started")
