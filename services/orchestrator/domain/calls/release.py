"""RELEASE and CANCEL_PLAN: a run that stops lets go of its workflow."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain.calls.epics import Epic
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.enums import Call


@dataclass(frozen=True, slots=True)
class ReleaseEpic:
    """Give tasks back, and the epic too when its owner is done with it."""

    call_id: str
    epic_id: str
    task_ids: tuple[str, ...]
    disown: bool


CALLS = (
    PeerCall(Call.RELEASE, ReleaseEpic),
    PeerCall(Call.CANCEL_PLAN, Epic),
)
