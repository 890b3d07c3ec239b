"""Which payload each event of a run's journal has, by the name that is stored."""

from collections.abc import Mapping

from pointsman.services.orchestrator.domain import contender_events, events, limit_events, permission_events
from pointsman.services.orchestrator.domain.enums import InternalEvent, Trigger

EVENTS: Mapping[str, type] = {
    **{str(trigger): events.Transitioned for trigger in Trigger},
    str(InternalEvent.SUBMITTED): events.Submitted,
    str(InternalEvent.LABELLED): events.Labelled,
    str(InternalEvent.PERMISSION_REQUESTED): permission_events.PermissionRequested,
    str(InternalEvent.ACCOUNT_PAUSED): limit_events.AccountPaused,
    str(InternalEvent.WORK_TAKEN_UP): limit_events.WorkTakenUp,
    str(InternalEvent.CALLED): events.Called,
    str(InternalEvent.CALL_ENDED): events.CallEnded,
    str(InternalEvent.RESUMABLES_FOUND): events.ResumablesFound,
    str(InternalEvent.EPIC_STORED): events.EpicStored,
    str(InternalEvent.RESUMED): events.Resumed,
    str(InternalEvent.PLANNED): events.Planned,
    str(InternalEvent.PLAN_STORED): events.PlanStored,
    str(InternalEvent.FEEDBACK_GIVEN): events.FeedbackGiven,
    str(InternalEvent.FEEDBACK_SETTLED): events.FeedbackSettled,
    str(InternalEvent.RESEARCHED): events.Researched,
    str(InternalEvent.DESIGNED): events.Designed,
    str(InternalEvent.WORKFLOW_SEEN): events.WorkflowSeen,
    str(InternalEvent.WAVE_CLAIMED): events.WaveClaimed,
    str(InternalEvent.PIPELINE_ADVANCED): events.PipelineAdvanced,
    str(InternalEvent.STAGE_FAILED): events.StageFailed,
    str(InternalEvent.STAGE_REVIEWED): events.StageReviewed,
    str(InternalEvent.STAGE_PROVEN): events.StageProven,
    str(InternalEvent.STAGE_DEFERRED): events.StageDeferred,
    str(InternalEvent.WORK_HANDED_IN): events.WorkHandedIn,
    str(InternalEvent.CONTENDER_HANDED_IN): contender_events.ContenderHandedIn,
    str(InternalEvent.CONTENDER_PROVEN): contender_events.ContenderProven,
    str(InternalEvent.CONTENDER_CHOSEN): contender_events.ContenderChosen,
    str(InternalEvent.TASK_JUDGED): events.TaskJudged,
    str(InternalEvent.WAVE_VERIFIED): events.WaveVerified,
    str(InternalEvent.WAVE_CONCLUDED): events.WaveConcluded,
    str(InternalEvent.ASSIGNED): events.Assigned,
    str(InternalEvent.ASSIGNMENT_RETRIED): events.AssignmentRetried,
    str(InternalEvent.LEASE_LOST): events.LeaseLost,
    str(InternalEvent.ASSIGNMENT_ENDED): events.AssignmentEnded,
    str(InternalEvent.ASKED): events.Asked,
    str(InternalEvent.ANSWERED): events.Answered,
    str(InternalEvent.BUDGET_HELD): events.BudgetHeld,
    str(InternalEvent.INTENT_CHANGED): events.IntentChanged,
    str(InternalEvent.CONFIDENCE_SET): events.ConfidenceSet,
    str(InternalEvent.RISKS_NOTED): events.RisksNoted,
}
EVENT_OF: Mapping[type, InternalEvent] = {EVENTS[str(name)]: name for name in InternalEvent}
