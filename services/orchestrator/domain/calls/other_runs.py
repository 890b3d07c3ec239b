"""PARK_RUN, MERGE_INTO_RUN, START_NEXT, TELL_ENTRY and TELL_SCHEDULE: what a run says to other runs, to its entry and to its schedule."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.enums import Call


@dataclass(frozen=True, slots=True)
class OtherRun:
    """Say something to another run."""

    call_id: str
    run_id: str
    text: str


@dataclass(frozen=True, slots=True)
class StartNext:
    """Start the run of the next epic: the one named, else the best of the queue."""

    call_id: str
    epic_id: str


@dataclass(frozen=True, slots=True)
class TellEntry:
    """Tell the entry of a merge queue how its linked run has ended."""

    call_id: str
    entry_id: str


@dataclass(frozen=True, slots=True)
class TellSchedule:
    """Tell the schedule that started the run how it has ended."""

    call_id: str


CALLS = (
    PeerCall(Call.PARK_RUN, OtherRun),
    PeerCall(Call.MERGE_INTO_RUN, OtherRun),
    PeerCall(Call.START_NEXT, StartNext),
    PeerCall(Call.TELL_ENTRY, TellEntry),
    PeerCall(Call.TELL_SCHEDULE, TellSchedule),
)
