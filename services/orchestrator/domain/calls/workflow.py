"""Calls to the workflow service."""

from pointsman.services.orchestrator.domain import acceptance, commands, execution, intake, peer_requests, planning
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall, fail_run
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Trigger


def _resumables_unknown(builder: DecisionBuilder, command: CallRefused) -> None:
    builder.transition(Trigger.NO_RESUMABLE, command.reason)


def _plan_refused(builder: DecisionBuilder, command: CallRefused) -> None:
    """A plan that the workflow service cannot take is replaced by the built-in one, once."""
    if builder.run.plan_built_in:
        fail_run(builder, command)
    else:
        builder.risk("plan-refused", f"the planner's plan could not be stored: {command.reason}"[:1000])
        planning.planner_lost(builder)


def _wave_not_claimed(builder: DecisionBuilder, command: CallRefused) -> None:
    builder.transition(Trigger.DISPATCH_FAILED, command.reason, is_replan=True)


WORKFLOW_CALLS = (
    PeerCall(
        Call.LIST_RESUMABLE,
        peer_requests.ListResumable,
        commands.ResumablesFound,
        intake.resumables_found,
        _resumables_unknown,
    ),
    PeerCall(Call.STORE_EPIC, peer_requests.StoreEpic, commands.EpicStored, intake.epic_stored),
    PeerCall(Call.QUEUE_MESSAGE, peer_requests.StoreEpic, commands.EpicStored, intake.epic_stored),
    PeerCall(Call.LOAD_EPIC, peer_requests.Epic, commands.EpicLoaded, intake.epic_loaded),
    PeerCall(Call.STORE_PLAN, peer_requests.StorePlan, commands.PlanStored, planning.plan_stored, _plan_refused),
    PeerCall(Call.EXECUTE, peer_requests.Epic, commands.WorkflowSeen, execution.workflow_seen),
    PeerCall(Call.GET_WORKFLOW, peer_requests.Epic, commands.WorkflowSeen, execution.workflow_seen),
    PeerCall(
        Call.FORWARD_ANSWER,
        peer_requests.ForwardAnswer,
        commands.WorkflowSeen,
        execution.workflow_seen,
        execution.answer_refused,
    ),
    PeerCall(
        Call.CLAIM_WAVE,
        peer_requests.ClaimWave,
        commands.WaveClaimed,
        execution.wave_claimed,
        _wave_not_claimed,
    ),
    PeerCall(
        Call.SETTLE_WAVE,
        peer_requests.SettleWave,
        commands.WorkflowSeen,
        acceptance.wave_settled,
        acceptance.wave_refused,
    ),
    PeerCall(Call.RELEASE, peer_requests.ReleaseEpic),
    PeerCall(Call.CANCEL_PLAN, peer_requests.Epic),
)
