"""Every call that a run makes to a peer or to another run.

One file holds all that the domain knows of a call: what it carries, what its answer is, and what follows from its
answer and from its refusal. Calls that share an answer share a file. Whatever looks up a call does so in CALLS.
"""

from collections.abc import Mapping

from pointsman.services.orchestrator.domain.calls import (
    claim_wave,
    epics,
    other_runs,
    pipelines,
    plans,
    release,
    report_outcome,
    resolve_debate,
    resumables,
    settle_wave,
    workflow_status,
)
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.enums import Call

_CONVERSATIONS = (
    claim_wave.CALLS,
    epics.CALLS,
    other_runs.CALLS,
    pipelines.CALLS,
    plans.CALLS,
    release.CALLS,
    report_outcome.CALLS,
    resolve_debate.CALLS,
    resumables.CALLS,
    settle_wave.CALLS,
    workflow_status.CALLS,
)
CALLS: Mapping[Call, PeerCall] = {call.kind: call for calls in _CONVERSATIONS for call in calls}
