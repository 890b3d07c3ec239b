"""Every call that a run makes to a peer or to another run: one registry, from which all that looks up a call is derived."""

from collections.abc import Mapping

from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.calls.pipeline import PIPELINE_CALLS
from pointsman.services.orchestrator.domain.calls.router import ROUTER_CALLS
from pointsman.services.orchestrator.domain.calls.runs import RUN_CALLS
from pointsman.services.orchestrator.domain.calls.workflow import WORKFLOW_CALLS
from pointsman.services.orchestrator.domain.enums import Call

CALLS: Mapping[Call, PeerCall] = {
    call.kind: call for call in (*WORKFLOW_CALLS, *PIPELINE_CALLS, *ROUTER_CALLS, *RUN_CALLS)
}
