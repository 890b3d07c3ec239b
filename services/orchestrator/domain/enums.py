"""The enumerations of a run: its states, the events that change or keep them, and the kinds of everything else."""

from enum import StrEnum


class State(StrEnum):
    """The states of a run, in the order of the diagram."""

    BOOT = "BOOT"
    IDLE_PROBE_BD = "IDLE_PROBE_BD"
    RESUME_ASK = "RESUME_ASK"
    RESUME_PLAN = "RESUME_PLAN"
    IDLE = "IDLE"
    INTAKE = "INTAKE"
    ASK_SWITCH = "ASK_SWITCH"
    EPIC_SYNC = "EPIC_SYNC"
    PLAN_BASELINE = "PLAN_BASELINE"
    PLAN_REVIEW = "PLAN_REVIEW"
    OBSERVE = "OBSERVE"
    RESEARCH_FANOUT = "RESEARCH_FANOUT"
    RESEARCH_INGEST = "RESEARCH_INGEST"
    RESEARCH_EVAL = "RESEARCH_EVAL"
    WAIT_OTHERS = "WAIT_OTHERS"
    DETAIL_DESIGN = "DETAIL_DESIGN"
    CODER_HANDOFF = "CODER_HANDOFF"
    SCHEDULE = "SCHEDULE"
    QUEUE = "QUEUE"
    DISPATCH = "DISPATCH"
    CODER_EXEC = "CODER_EXEC"
    REVIEW_ACCEPT = "REVIEW_ACCEPT"
    REPLAN_PATCH = "REPLAN_PATCH"
    COMPLETE = "COMPLETE"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"


TERMINAL = frozenset({State.COMPLETE, State.CANCELLED, State.FAILED})


class Trigger(StrEnum):
    """The events that take a run along a row of the table, to another state or to the same one again."""

    AUTO = "auto"
    FOUND_RESUMABLE = "found_resumable"
    NO_RESUMABLE = "no_resumable"
    USER_RESUME_YES = "user_resume_yes"
    USER_RESUME_NO = "user_resume_no"
    RESUME_QUEUE_LOADED = "resume_queue_loaded"
    USER_INPUT = "user_input"
    CONFLICT_WITH_CURRENT_EPIC = "conflict_with_current_epic"
    CONFIDENCE_LT_0_6 = "confidence_lt_0_6"
    INTAKE_OK = "intake_ok"
    SWITCH = "switch"
    KEEP = "keep"
    MERGE = "merge"
    CLARIFIED = "clarified"
    BD_UPSERT_DONE = "bd_upsert_done"
    NEED_PLAN_REVIEW = "need_plan_review"
    SKIP_PLAN_REVIEW = "skip_plan_review"
    NON_BLOCKING_FEEDBACK = "non_blocking_feedback"
    PASS_OR_FEEDBACK_LIMIT_REACHED = "pass_or_feedback_limit_reached"
    BLOCKING_FEEDBACK = "blocking_feedback"
    FEEDBACK_ESCALATED = "feedback_escalated"
    OBSERVE_TARGET_DEFINED = "observe_target_defined"
    RESULT_ARRIVED = "result_arrived"
    ARTIFACTS_LOADED = "artifacts_loaded"
    NEED_MORE_RESULTS = "need_more_results"
    NEED_REPLAN = "need_replan"
    REPLAN_LIMIT = "replan_limit"
    ENOUGH_INFO = "enough_info"
    DESIGN_READY = "design_ready"
    HANDOFF_BUNDLE_READY = "handoff_bundle_ready"
    RESOURCE_BUSY = "resource_busy"
    RESOURCE_READY = "resource_ready"
    RESOURCE_AVAILABLE = "resource_available"
    DISPATCH_SUCCESS = "dispatch_success"
    DISPATCH_FAILED = "dispatch_failed"
    CLAIMS_EVIDENCE_ARRIVED = "claims_evidence_arrived"
    REJECT_OR_RETRY = "reject_or_retry"
    NEXT_WAVE = "next_wave"
    REQUIREMENT_CHANGED = "requirement_changed"
    REQUIREMENT_CHANGED_OR_BLOCKED = "requirement_changed_or_blocked"
    PASS = "pass"
    PATCH_APPLIED = "patch_applied"
    CANCEL = "cancel"
    FATAL_ERROR = "fatal_error"


class InternalEvent(StrEnum):
    """The events that leave a run in its state."""

    SUBMITTED = "submitted"
    CALLED = "peer_called"
    CALL_ENDED = "peer_answered"
    RESUMABLES_FOUND = "resumables_found"
    EPIC_STORED = "epic_stored"
    RESUMED = "epic_resumed"
    PLANNED = "planned"
    PLAN_STORED = "plan_stored"
    FEEDBACK_GIVEN = "feedback_given"
    FEEDBACK_SETTLED = "feedback_settled"
    RESEARCHED = "researched"
    DESIGNED = "designed"
    WORKFLOW_SEEN = "workflow_seen"
    WAVE_CLAIMED = "wave_claimed"
    PIPELINE_ADVANCED = "pipeline_advanced"
    STAGE_FAILED = "stage_failed"
    STAGE_REVIEWED = "stage_reviewed"
    STAGE_PROVEN = "stage_proven"
    STAGE_DEFERRED = "stage_deferred"
    WORK_HANDED_IN = "work_handed_in"
    CONTENDER_HANDED_IN = "contender_handed_in"
    CONTENDER_PROVEN = "contender_proven"
    CONTENDER_CHOSEN = "contender_chosen"
    TASK_JUDGED = "task_judged"
    WAVE_VERIFIED = "wave_verified"
    WAVE_CONCLUDED = "wave_concluded"
    ASSIGNED = "assigned"
    ASSIGNMENT_RETRIED = "assignment_retried"
    ASSIGNMENT_ENDED = "assignment_ended"
    LEASE_LOST = "lease_lost"
    ASKED = "asked"
    ANSWERED = "answered"
    BUDGET_HELD = "budget_held"
    INTENT_CHANGED = "intent_changed"
    CONFIDENCE_SET = "confidence_set"
    RISKS_NOTED = "risks_noted"
    LABELLED = "labelled"
    PERMISSION_REQUESTED = "permission_requested"
    ACCOUNT_PAUSED = "account_paused"
    WORK_TAKEN_UP = "work_taken_up"


class Capability(StrEnum):
    """What an agent can do."""

    PLAN = "PLAN"
    DESIGN = "DESIGN"
    RESEARCH = "RESEARCH"
    CODE = "CODE"
    REVIEW = "REVIEW"
    DEBATE = "DEBATE"
    VERIFY = "VERIFY"
    SURVEY = "SURVEY"
    RESOLVE = "RESOLVE"
    """Codes what coders could not bring into a branch."""


WRITING = frozenset({Capability.CODE, Capability.RESOLVE})
"""Whose stages hand in work."""


class Purpose(StrEnum):
    """What an assignment is for."""

    PLAN = "PLAN"
    PATCH = "PATCH"
    DEBATE = "DEBATE"
    PLAN_ANSWER = "PLAN_ANSWER"
    RESEARCH = "RESEARCH"
    DESIGN = "DESIGN"
    STAGE = "STAGE"
    REVIEW = "REVIEW"
    VERIFY = "VERIFY"


class AssignmentEnd(StrEnum):
    """How an assignment ended."""

    DONE = "DONE"
    EXHAUSTED = "EXHAUSTED"
    CANCELLED = "CANCELLED"


class Call(StrEnum):
    """The kinds of peer calls; the strings are stored in outboxes and journals and never change."""

    LIST_RESUMABLE = "workflow.list_resumable"
    STORE_EPIC = "workflow.store_epic"
    QUEUE_MESSAGE = "workflow.queue_message"
    LOAD_EPIC = "workflow.load_epic"
    STORE_PLAN = "workflow.store_plan"
    EXECUTE = "workflow.execute"
    GET_WORKFLOW = "workflow.see"
    FORWARD_ANSWER = "workflow.tell"
    CLAIM_WAVE = "workflow.claim_wave"
    SETTLE_WAVE = "workflow.settle_wave"
    RELEASE = "workflow.release"
    CANCEL_PLAN = "workflow.cancel_plan"
    START_PIPELINE = "pipeline.start"
    COMPLETE_STAGE = "pipeline.complete_stage"
    FORWARD_STAGE_ANSWER = "pipeline.tell"
    GET_PIPELINE = "pipeline.see"
    CANCEL_PIPELINE = "pipeline.cancel"
    REPORT_OUTCOME = "router.report_outcome"
    RESOLVE_DEBATE = "router.resolve_debate"
    PARK_RUN = "run.park"
    MERGE_INTO_RUN = "run.merge"
    START_NEXT = "run.start_next"
    TELL_ENTRY = "entry.tell"
    TELL_SCHEDULE = "schedule.tell"


class Resume(StrEnum):
    """What to do about unfinished work."""

    ASK = "ASK"
    YES = "YES"
    NO = "NO"


class ExecutionMode(StrEnum):
    """When the work pauses for a person."""

    STEP = "STEP"
    PHASE = "PHASE"
    QUALITY_GATE = "QUALITY_GATE"


class Question(StrEnum):
    """Why a person is asked."""

    RESUME = "RESUME"
    CONFLICT = "CONFLICT"
    LOW_CONFIDENCE = "LOW_CONFIDENCE"
    FEEDBACK_ESCALATED = "FEEDBACK_ESCALATED"
    REPLAN_LIMIT = "REPLAN_LIMIT"
    DEBATE = "DEBATE"
    ACCEPTANCE = "ACCEPTANCE"
    BUDGET = "BUDGET"
    PAUSED = "PAUSED"
    BLOCKED = "BLOCKED"
    PIPELINE_ESCALATED = "PIPELINE_ESCALATED"
    PERMISSION = "PERMISSION"


class Reply(StrEnum):
    """What a person may answer."""

    RESUME_YES = "RESUME_YES"
    RESUME_NO = "RESUME_NO"
    SWITCH = "SWITCH"
    KEEP = "KEEP"
    MERGE = "MERGE"
    CLARIFIED = "CLARIFIED"
    ACCEPT = "ACCEPT"
    REJECT = "REJECT"
    PROCEED = "PROCEED"
    MODIFY = "MODIFY"
    ESCALATE = "ESCALATE"
    RAISE = "RAISE"
    UNBLOCK = "UNBLOCK"
    RETRY = "RETRY"
    SKIP = "SKIP"
    WAIVE = "WAIVE"
    RESUME = "RESUME"
    RESTART_STAGE = "RESTART_STAGE"
    SKIP_STAGE = "SKIP_STAGE"
    ALLOW = "ALLOW"
    DENY = "DENY"


TAKES: dict[Question, tuple[Reply, ...]] = {
    Question.RESUME: (Reply.RESUME_YES, Reply.RESUME_NO),
    Question.CONFLICT: (Reply.SWITCH, Reply.KEEP, Reply.MERGE),
    Question.LOW_CONFIDENCE: (Reply.CLARIFIED,),
    Question.FEEDBACK_ESCALATED: (Reply.CLARIFIED,),
    Question.REPLAN_LIMIT: (Reply.CLARIFIED,),
    Question.DEBATE: (Reply.PROCEED, Reply.MODIFY, Reply.ESCALATE),
    Question.ACCEPTANCE: (Reply.ACCEPT, Reply.REJECT),
    Question.BUDGET: (Reply.RAISE,),
    Question.PAUSED: (Reply.RESUME, Reply.WAIVE, Reply.SKIP),
    Question.BLOCKED: (Reply.UNBLOCK, Reply.SKIP, Reply.RETRY),
    Question.PIPELINE_ESCALATED: (Reply.RESTART_STAGE, Reply.SKIP_STAGE),
    Question.PERMISSION: (Reply.ALLOW, Reply.DENY),
}


class PermissionState(StrEnum):
    """What was answered to an agent that asks for a permission."""

    PENDING = "PENDING"
    ALLOWED = "ALLOWED"
    DENIED = "DENIED"


class Wait(StrEnum):
    """Whom or what a run waits for."""

    PERSON = "PERSON"
    AGENT = "AGENT"
    DEPENDENCY = "DEPENDENCY"
    PAUSE = "PAUSE"
    BUDGET = "BUDGET"
    TIMER = "TIMER"
    PEER = "PEER"


class Severity(StrEnum):
    """How bad something is."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


class EvidenceKind(StrEnum):
    """What kind of evidence it is; a NOTE alone never supports a claim."""

    COMMAND = "COMMAND"
    FILE = "FILE"
    DIFF = "DIFF"
    TEST_REPORT = "TEST_REPORT"
    URL = "URL"
    NOTE = "NOTE"


class Verdict(StrEnum):
    """What a reviewer decides."""

    PASS = "PASS"
    RETRY = "RETRY"
    REPLAN = "REPLAN"


class Grade(StrEnum):
    """What accepted work is worth, the least first."""

    FORCED = "FORCED"
    ON_WORD = "ON_WORD"
    UNBROKEN = "UNBROKEN"
    PROVEN = "PROVEN"


class DebateVerdict(StrEnum):
    """How the router ends a debate."""

    PROCEED = "PROCEED"
    MODIFY = "MODIFY"
    ESCALATE = "ESCALATE"
    RETRY = "RETRY"
    PIVOT = "PIVOT"


class TaskStatus(StrEnum):
    """How far a task is, as the run sees it."""

    PENDING = "pending"
    RUNNING = "running"
    REVIEWING = "reviewing"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class PipelineStatus(StrEnum):
    """How a task's pipeline is."""

    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    COMPLETED_WITH_FAILURES = "COMPLETED_WITH_FAILURES"
    ESCALATED = "ESCALATED"
    ABORTED = "ABORTED"
    CANCELLED = "CANCELLED"


WRITES_TESTS = "TEST:write"
"""The stage of the template test-first that writes tests before the code."""
PIPELINE_ENDED = frozenset(PipelineStatus) - {PipelineStatus.ACTIVE, PipelineStatus.ESCALATED}


class WorkflowStatus(StrEnum):
    """How the epic's workflow is."""

    UNKNOWN = ""
    IDLE = "idle"
    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    BLOCKED = "blocked"
    FAILED = "failed"
    COMPLETED = "completed"


class Attention(StrEnum):
    """What a run needs from people."""

    NEEDS_YOU = "NEEDS_YOU"
    STUCK = "STUCK"
    WORKING = "WORKING"
    FAILED = "FAILED"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
