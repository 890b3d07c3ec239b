"""The machine as data: one list of rows drives the engine, `GetMachine`, the diagram and the tests."""

from pointsman.services.orchestrator.domain import acceptance, ending, execution, intake, planning, research
from pointsman.services.orchestrator.domain.calls import workflow_status
from pointsman.services.orchestrator.domain.decision import Guard, Row, Table
from pointsman.services.orchestrator.domain.enums import TERMINAL, Resume, State, Trigger
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_FEEDBACK_ROUNDS

VERSION = 1
INITIAL = State.BOOT
AUTO_RESUME = Guard("auto_resume", lambda run: run.order.resume is Resume.YES)
NO_AUTO_RESUME = Guard("!auto_resume", lambda run: run.order.resume is not Resume.YES)
UNSURE = Guard("confidence < 0.6", lambda run: run.effective_confidence < CONFIDENCE_FLOOR)
SURE = Guard("confidence >= 0.6", lambda run: run.effective_confidence >= CONFIDENCE_FLOOR)
FEEDBACK_LEFT = Guard(
    "feedback_count < 3", lambda run: all(item.rounds < MAX_FEEDBACK_ROUNDS for item in run.remarks.values())
)
WAVE_PASSED = Guard("wave_passed", lambda run: all(task.judgement.accepted for task in run.wave_tasks.values()))

_PATCH = (ending.stop_work, planning.patch_plan)
_END = (ending.stop_work, ending.release_or_cancel_workflow, ending.tell_starter)
_SEED: tuple[Row, ...] = (
    Row(State.BOOT, Trigger.AUTO, State.IDLE_PROBE_BD, (intake.probe_unfinished_work,)),
    Row(State.IDLE_PROBE_BD, Trigger.FOUND_RESUMABLE, State.RESUME_ASK, (intake.ask_to_resume,), NO_AUTO_RESUME),
    Row(State.IDLE_PROBE_BD, Trigger.FOUND_RESUMABLE, State.RESUME_PLAN, (intake.load_resume_queue,), AUTO_RESUME),
    Row(State.IDLE_PROBE_BD, Trigger.NO_RESUMABLE, State.IDLE, (intake.take_message,)),
    Row(State.RESUME_ASK, Trigger.USER_RESUME_YES, State.RESUME_PLAN, (intake.load_resume_queue,)),
    Row(State.RESUME_ASK, Trigger.USER_RESUME_NO, State.IDLE, (intake.take_message,)),
    Row(State.RESUME_PLAN, Trigger.RESUME_QUEUE_LOADED, State.OBSERVE, (research.define_targets,)),
    Row(State.IDLE, Trigger.USER_INPUT, State.INTAKE, (intake.judge_intake,)),
    Row(State.INTAKE, Trigger.CONFIDENCE_LT_0_6, State.ASK_SWITCH, (intake.ask_for_clarity,), UNSURE),
    Row(State.INTAKE, Trigger.CONFLICT_WITH_CURRENT_EPIC, State.ASK_SWITCH, (intake.ask_which_epic,)),
    Row(State.INTAKE, Trigger.INTAKE_OK, State.EPIC_SYNC, (intake.store_epic,), SURE),
    Row(State.ASK_SWITCH, Trigger.SWITCH, State.EPIC_SYNC, (intake.park_rival, intake.store_epic)),
    Row(State.ASK_SWITCH, Trigger.KEEP, State.EPIC_SYNC, (intake.store_epic,)),
    Row(State.ASK_SWITCH, Trigger.MERGE, State.EPIC_SYNC, (intake.merge_into_rival,)),
    Row(State.ASK_SWITCH, Trigger.CLARIFIED, State.EPIC_SYNC, (intake.store_epic,)),
    Row(State.EPIC_SYNC, Trigger.BD_UPSERT_DONE, State.PLAN_BASELINE, (planning.make_plan,)),
    Row(State.PLAN_BASELINE, Trigger.CONFIDENCE_LT_0_6, State.ASK_SWITCH, (intake.ask_for_clarity,), UNSURE),
    Row(State.PLAN_BASELINE, Trigger.NEED_PLAN_REVIEW, State.PLAN_REVIEW, (planning.debate_plan,)),
    Row(State.PLAN_BASELINE, Trigger.SKIP_PLAN_REVIEW, State.OBSERVE, (research.define_targets,)),
    Row(State.PLAN_REVIEW, Trigger.NON_BLOCKING_FEEDBACK, State.PLAN_REVIEW, (planning.debate_plan,), FEEDBACK_LEFT),
    Row(State.PLAN_REVIEW, Trigger.PASS_OR_FEEDBACK_LIMIT_REACHED, State.OBSERVE, (research.define_targets,)),
    Row(State.OBSERVE, Trigger.OBSERVE_TARGET_DEFINED, State.RESEARCH_FANOUT, (research.fan_out_research,)),
    Row(State.RESEARCH_FANOUT, Trigger.RESULT_ARRIVED, State.RESEARCH_INGEST, (research.ingest_result,)),
    Row(State.RESEARCH_INGEST, Trigger.ARTIFACTS_LOADED, State.RESEARCH_EVAL, (research.evaluate_research,)),
    Row(State.RESEARCH_EVAL, Trigger.NEED_MORE_RESULTS, State.WAIT_OTHERS, (research.await_open_slots,)),
    Row(State.WAIT_OTHERS, Trigger.RESULT_ARRIVED, State.RESEARCH_INGEST, (research.ingest_result,)),
    Row(State.RESEARCH_EVAL, Trigger.NEED_REPLAN, State.PLAN_BASELINE, (planning.make_plan,)),
    Row(State.RESEARCH_EVAL, Trigger.ENOUGH_INFO, State.DETAIL_DESIGN, (research.make_design,)),
    Row(State.DETAIL_DESIGN, Trigger.DESIGN_READY, State.CODER_HANDOFF, (execution.build_bundles,)),
    Row(State.CODER_HANDOFF, Trigger.HANDOFF_BUNDLE_READY, State.SCHEDULE, (execution.schedule,)),
    Row(State.SCHEDULE, Trigger.CONFIDENCE_LT_0_6, State.ASK_SWITCH, (intake.ask_for_clarity,), UNSURE),
    Row(State.SCHEDULE, Trigger.RESOURCE_BUSY, State.QUEUE, (workflow_status.wait_for_room,)),
    Row(State.SCHEDULE, Trigger.RESOURCE_READY, State.DISPATCH, (execution.claim_wave,)),
    Row(State.QUEUE, Trigger.RESOURCE_AVAILABLE, State.DISPATCH, (execution.claim_wave,)),
    Row(State.DISPATCH, Trigger.DISPATCH_SUCCESS, State.CODER_EXEC, (execution.follow_pipelines,)),
    Row(State.CODER_EXEC, Trigger.CLAIMS_EVIDENCE_ARRIVED, State.REVIEW_ACCEPT, (acceptance.judge_wave,)),
    Row(State.REVIEW_ACCEPT, Trigger.REJECT_OR_RETRY, State.CODER_HANDOFF, (execution.build_bundles,)),
    Row(State.REVIEW_ACCEPT, Trigger.REQUIREMENT_CHANGED_OR_BLOCKED, State.REPLAN_PATCH, _PATCH),
    Row(State.REVIEW_ACCEPT, Trigger.PASS, State.COMPLETE, (ending.deliver, ending.tell_starter), WAVE_PASSED),
    Row(State.REPLAN_PATCH, Trigger.PATCH_APPLIED, State.PLAN_BASELINE, (planning.make_plan,)),
)
_ADDED: tuple[Row, ...] = (
    Row(State.PLAN_REVIEW, Trigger.BLOCKING_FEEDBACK, State.PLAN_BASELINE, (planning.make_plan,)),
    Row(State.PLAN_REVIEW, Trigger.FEEDBACK_ESCALATED, State.ASK_SWITCH, (intake.ask_about_feedback,)),
    Row(State.RESEARCH_EVAL, Trigger.REPLAN_LIMIT, State.ASK_SWITCH, (intake.ask_about_replans,)),
    Row(State.DISPATCH, Trigger.RESOURCE_BUSY, State.QUEUE, (workflow_status.wait_for_room,)),
    Row(State.DISPATCH, Trigger.DISPATCH_FAILED, State.REPLAN_PATCH, _PATCH),
    Row(State.REVIEW_ACCEPT, Trigger.NEXT_WAVE, State.CODER_HANDOFF, (execution.build_bundles,), WAVE_PASSED),
    Row(State.REPLAN_PATCH, Trigger.CONFIDENCE_LT_0_6, State.ASK_SWITCH, (intake.ask_for_clarity,), UNSURE),
)
CHANGEABLE: tuple[State, ...] = (
    State.PLAN_BASELINE, State.PLAN_REVIEW, State.OBSERVE, State.RESEARCH_FANOUT, State.RESEARCH_INGEST,
    State.RESEARCH_EVAL, State.WAIT_OTHERS, State.DETAIL_DESIGN, State.CODER_HANDOFF, State.SCHEDULE, State.QUEUE,
    State.DISPATCH, State.CODER_EXEC,
)  # fmt: skip
_CHANGES = tuple(Row(state, Trigger.REQUIREMENT_CHANGED, State.REPLAN_PATCH, _PATCH) for state in CHANGEABLE)
_ENDS = tuple(
    row
    for state in State
    if state not in TERMINAL
    for row in (
        Row(state, Trigger.CANCEL, State.CANCELLED, _END),
        Row(state, Trigger.FATAL_ERROR, State.FAILED, _END),
    )
)
TABLE = Table((*_SEED, *_ADDED, *_CHANGES, *_ENDS))


def mermaid() -> str:
    """The table as a Mermaid state diagram; cancel and fatal_error are drawn once, for any state."""
    lines = ["stateDiagram-v2", f"  [*] --> {INITIAL}"]
    for row in (*_SEED, *_ADDED, *_CHANGES):
        label = f"{row.event} [{row.guard.name}]" if row.guard.name else str(row.event)
        lines.append(f"  {row.source} --> {row.target}: {label}")
    lines += [
        "  state any_state <<choice>>",
        "  any_state --> CANCELLED: cancel",
        "  any_state --> FAILED: fatal_error",
    ]
    lines += [f"  {state} --> [*]" for state in State if state in TERMINAL]
    return "\n".join(lines) + "\n"
