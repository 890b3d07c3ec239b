"""The machine as data: one list of rows drives the engine, `GetMachine`, the diagram and the tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pointsman.services.orchestrator.domain.enums import TERMINAL, Move, Resume, State
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_FEEDBACK_ROUNDS, Run

VERSION = 1
INITIAL = State.BOOT


@dataclass(frozen=True, slots=True)
class Row:
    """One transition: from a state, on an event, if the guard holds, to a state, doing the actions on the way."""

    source: State
    event: Move
    target: State
    actions: tuple[str, ...] = ()
    guard: str = ""


GUARDS: Mapping[str, Callable[[Run], bool]] = {
    "": lambda run: True,  # noqa: ARG005
    "auto_resume": lambda run: run.order.resume is Resume.YES,
    "!auto_resume": lambda run: run.order.resume is not Resume.YES,
    "confidence < 0.6": lambda run: run.effective_confidence < CONFIDENCE_FLOOR,
    "confidence >= 0.6": lambda run: run.effective_confidence >= CONFIDENCE_FLOOR,
    "feedback_count < 3": lambda run: all(item.rounds < MAX_FEEDBACK_ROUNDS for item in run.remarks.values()),
    "wave_passed": lambda run: all(task.judgement.accepted for task in run.wave_tasks.values()),
}

_LOW = "confidence < 0.6"
_SEED: tuple[Row, ...] = (
    Row(State.BOOT, Move.AUTO, State.IDLE_PROBE_BD, ("probe_unfinished_work",)),
    Row(State.IDLE_PROBE_BD, Move.FOUND_RESUMABLE, State.RESUME_ASK, ("ask_to_resume",), "!auto_resume"),
    Row(State.IDLE_PROBE_BD, Move.FOUND_RESUMABLE, State.RESUME_PLAN, ("load_resume_queue",), "auto_resume"),
    Row(State.IDLE_PROBE_BD, Move.NO_RESUMABLE, State.IDLE, ("take_message",)),
    Row(State.RESUME_ASK, Move.USER_RESUME_YES, State.RESUME_PLAN, ("load_resume_queue",)),
    Row(State.RESUME_ASK, Move.USER_RESUME_NO, State.IDLE, ("take_message",)),
    Row(State.RESUME_PLAN, Move.RESUME_QUEUE_LOADED, State.OBSERVE, ("define_targets",)),
    Row(State.IDLE, Move.USER_INPUT, State.INTAKE, ("judge_intake",)),
    Row(State.INTAKE, Move.CONFIDENCE_LT_0_6, State.ASK_SWITCH, ("ask_for_clarity",), _LOW),
    Row(State.INTAKE, Move.CONFLICT_WITH_CURRENT_EPIC, State.ASK_SWITCH, ("ask_which_epic",)),
    Row(State.INTAKE, Move.INTAKE_OK, State.EPIC_SYNC, ("store_epic",), "confidence >= 0.6"),
    Row(State.ASK_SWITCH, Move.SWITCH, State.EPIC_SYNC, ("park_rival", "store_epic")),
    Row(State.ASK_SWITCH, Move.KEEP, State.EPIC_SYNC, ("store_epic",)),
    Row(State.ASK_SWITCH, Move.MERGE, State.EPIC_SYNC, ("merge_into_rival",)),
    Row(State.ASK_SWITCH, Move.CLARIFIED, State.EPIC_SYNC, ("store_epic",)),
    Row(State.EPIC_SYNC, Move.BD_UPSERT_DONE, State.PLAN_BASELINE, ("make_plan",)),
    Row(State.PLAN_BASELINE, Move.CONFIDENCE_LT_0_6, State.ASK_SWITCH, ("ask_for_clarity",), _LOW),
    Row(State.PLAN_BASELINE, Move.NEED_PLAN_REVIEW, State.PLAN_REVIEW, ("debate_plan",)),
    Row(State.PLAN_BASELINE, Move.SKIP_PLAN_REVIEW, State.OBSERVE, ("define_targets",)),
    Row(State.PLAN_REVIEW, Move.NON_BLOCKING_FEEDBACK, State.PLAN_REVIEW, ("debate_plan",), "feedback_count < 3"),
    Row(State.PLAN_REVIEW, Move.PASS_OR_FEEDBACK_LIMIT_REACHED, State.OBSERVE, ("define_targets",)),
    Row(State.OBSERVE, Move.OBSERVE_TARGET_DEFINED, State.RESEARCH_FANOUT, ("fan_out_research",)),
    Row(State.RESEARCH_FANOUT, Move.RESULT_ARRIVED, State.RESEARCH_INGEST, ("ingest_result",)),
    Row(State.RESEARCH_INGEST, Move.ARTIFACTS_LOADED, State.RESEARCH_EVAL, ("evaluate_research",)),
    Row(State.RESEARCH_EVAL, Move.NEED_MORE_RESULTS, State.WAIT_OTHERS, ("await_open_slots",)),
    Row(State.WAIT_OTHERS, Move.RESULT_ARRIVED, State.RESEARCH_INGEST, ("ingest_result",)),
    Row(State.RESEARCH_EVAL, Move.NEED_REPLAN, State.PLAN_BASELINE, ("make_plan",)),
    Row(State.RESEARCH_EVAL, Move.ENOUGH_INFO, State.DETAIL_DESIGN, ("make_design",)),
    Row(State.DETAIL_DESIGN, Move.DESIGN_READY, State.CODER_HANDOFF, ("build_bundles",)),
    Row(State.CODER_HANDOFF, Move.HANDOFF_BUNDLE_READY, State.SCHEDULE, ("schedule",)),
    Row(State.SCHEDULE, Move.CONFIDENCE_LT_0_6, State.ASK_SWITCH, ("ask_for_clarity",), _LOW),
    Row(State.SCHEDULE, Move.RESOURCE_BUSY, State.QUEUE, ("wait_for_room",)),
    Row(State.SCHEDULE, Move.RESOURCE_READY, State.DISPATCH, ("claim_wave",)),
    Row(State.QUEUE, Move.RESOURCE_AVAILABLE, State.DISPATCH, ("claim_wave",)),
    Row(State.DISPATCH, Move.DISPATCH_SUCCESS, State.CODER_EXEC, ("follow_pipelines",)),
    Row(State.CODER_EXEC, Move.CLAIMS_EVIDENCE_ARRIVED, State.REVIEW_ACCEPT, ("judge_wave",)),
    Row(State.REVIEW_ACCEPT, Move.REJECT_OR_RETRY, State.CODER_HANDOFF, ("build_bundles",)),
    Row(State.REVIEW_ACCEPT, Move.REQUIREMENT_CHANGED_OR_BLOCKED, State.REPLAN_PATCH, ("stop_work", "patch_plan")),
    Row(State.REVIEW_ACCEPT, Move.PASS, State.COMPLETE, ("deliver",), "wave_passed"),
    Row(State.REPLAN_PATCH, Move.PATCH_APPLIED, State.PLAN_BASELINE, ("make_plan",)),
)
_ADDED: tuple[Row, ...] = (
    Row(State.PLAN_REVIEW, Move.BLOCKING_FEEDBACK, State.PLAN_BASELINE, ("make_plan",)),
    Row(State.PLAN_REVIEW, Move.FEEDBACK_ESCALATED, State.ASK_SWITCH, ("ask_about_feedback",)),
    Row(State.RESEARCH_EVAL, Move.REPLAN_LIMIT, State.ASK_SWITCH, ("ask_about_replans",)),
    Row(State.DISPATCH, Move.RESOURCE_BUSY, State.QUEUE, ("wait_for_room",)),
    Row(State.DISPATCH, Move.DISPATCH_FAILED, State.REPLAN_PATCH, ("stop_work", "patch_plan")),
    Row(State.REVIEW_ACCEPT, Move.NEXT_WAVE, State.CODER_HANDOFF, ("build_bundles",), "wave_passed"),
    Row(State.REPLAN_PATCH, Move.CONFIDENCE_LT_0_6, State.ASK_SWITCH, ("ask_for_clarity",), _LOW),
)
CHANGEABLE: tuple[State, ...] = (
    State.PLAN_BASELINE, State.PLAN_REVIEW, State.OBSERVE, State.RESEARCH_FANOUT, State.RESEARCH_INGEST,
    State.RESEARCH_EVAL, State.WAIT_OTHERS, State.DETAIL_DESIGN, State.CODER_HANDOFF, State.SCHEDULE, State.QUEUE,
    State.DISPATCH, State.CODER_EXEC,
)  # fmt: skip
_CHANGES = tuple(
    Row(state, Move.REQUIREMENT_CHANGED, State.REPLAN_PATCH, ("stop_work", "patch_plan")) for state in CHANGEABLE
)
_ENDS = tuple(
    row
    for state in State
    if state not in TERMINAL
    for row in (
        Row(state, Move.CANCEL, State.CANCELLED, ("stop_work", "release_or_cancel_workflow")),
        Row(state, Move.FATAL_ERROR, State.FAILED, ("stop_work", "release_or_cancel_workflow")),
    )
)
ROWS: tuple[Row, ...] = (*_SEED, *_ADDED, *_CHANGES, *_ENDS)
_BY_KEY: dict[tuple[State, Move], list[Row]] = {}
for _row in ROWS:
    _BY_KEY.setdefault((_row.source, _row.event), []).append(_row)


def rows_for(state: State, event: Move) -> Sequence[Row]:
    """The rows that leave a state on an event, in the order in which their guards are asked."""
    return _BY_KEY.get((state, event), ())


def events_from(state: State) -> tuple[Move, ...]:
    """The events that a state knows."""
    return tuple(dict.fromkeys(row.event for row in ROWS if row.source is state))


def mermaid() -> str:
    """The table as a Mermaid state diagram; cancel and fatal_error are drawn once, for any state."""
    lines = ["stateDiagram-v2", f"  [*] --> {INITIAL}"]
    for row in (*_SEED, *_ADDED, *_CHANGES):
        label = f"{row.event} [{row.guard}]" if row.guard else str(row.event)
        lines.append(f"  {row.source} --> {row.target}: {label}")
    lines += [
        "  state any_state <<choice>>",
        "  any_state --> CANCELLED: cancel",
        "  any_state --> FAILED: fatal_error",
    ]
    lines += [f"  {state} --> [*]" for state in State if state in TERMINAL]
    return "\n".join(lines) + "\n"
