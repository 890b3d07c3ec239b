"""Calls to other runs."""

from pointsman.services.orchestrator.domain import peer_requests
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.enums import Call

RUN_CALLS = (
    PeerCall(Call.PARK_RUN, peer_requests.OtherRun),
    PeerCall(Call.MERGE_INTO_RUN, peer_requests.OtherRun),
    PeerCall(Call.START_NEXT, peer_requests.StartNext),
)
