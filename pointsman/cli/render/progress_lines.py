"""A run in plain words: the plan, who works on what, what was proven or refused and why, what waits for a person."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.handoff.v1.proof_pb2 import Grade
from pointsman.api.journal.v1 import run_events_pb2 as journal
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.cli.render.transition_lines import Line, held_back, in_yellow, paused, shortened, taken_up

ENDS = {"COMPLETE": "bold green", "FAILED": "bold red", "CANCELLED": "bold yellow"}
_DOES: Mapping[assignments.Capability.ValueType, str] = {
    assignments.CAPABILITY_PLAN: "plans",
    assignments.CAPABILITY_DEBATE: "judges the plan",
    assignments.CAPABILITY_RESEARCH: "looks into the repository",
    assignments.CAPABILITY_SURVEY: "looks into the repository",
    assignments.CAPABILITY_DESIGN: "designs",
    assignments.CAPABILITY_CODE: "writes the code",
    assignments.CAPABILITY_RESOLVE: "writes the code as resolver",
    assignments.CAPABILITY_REVIEW: "reviews it",
    assignments.CAPABILITY_VERIFY: "proves it",
}


def progress_lines(transition: Transition) -> Iterator[Line]:
    """The lines for a transition that people need; most transitions have none."""
    name = transition.run.WhichOneof("event") or ""
    if name in _IN_WORDS:
        yield from _IN_WORDS[name](getattr(transition.run, name))
    if transition.from_state != transition.to_state and transition.to_state in ENDS:
        reason = shortened(transition.run.transitioned.reason)
        yield Line(f"{transition.to_state}{f': {reason}' if reason else ''}", ENDS[transition.to_state])


def work_line(item: assignments.Assignment) -> str:
    """Who works on what."""
    again = f", attempt {item.attempt}" if item.attempt > 1 else ""
    does = _DOES.get(item.capability, "works")
    return f"{item.task_id + ': ' if item.task_id else ''}{item.agent_id} {does}{again}"


def grade_text(grade: Grade.ValueType) -> str:
    """What work is worth, after a comma; empty when it is not graded."""
    return f", {Grade.Name(grade).removeprefix('GRADE_').replace('_', ' ')}" if grade else ""


def _planned(event: journal.Planned) -> Iterator[Line]:
    tasks = event.plan.tasks
    made_by = "built in" if event.plan.built_in else f"{event.plan.confidence:.0%} sure"
    yield Line(f"plan of {len(tasks)} task{'' if len(tasks) == 1 else 's'} ({made_by})", "bold")
    for task in tasks:
        yield Line(f"  {task.task_id}  {task.name}")


def _worked(event: journal.WorkHandedIn) -> Iterator[Line]:
    yield Line(f"{event.task_id}: changed {', '.join(event.work.changed_files) or 'no file'}", "cyan")


def _stage_failed(event: journal.StageFailed) -> Iterator[Line]:
    who = f" by {event.agent_id}" if event.agent_id else ""
    yield Line(f"{event.task_id}: sent back at {event.stage}{who}: {shortened(event.reason)}", "red")


def _verified(event: journal.WaveVerified) -> Iterator[Line]:
    for task in event.tasks:
        verdicts = [f"{one.criterion_id} {'passed' if one.passed else 'failed'}" for one in task.criteria]
        if verdicts:
            style = "green" if all(one.passed for one in task.criteria) else "red"
            yield Line(f"{task.task_id}: {', '.join(verdicts)}", style)
        if task.conflicts:
            yield Line(f"{task.task_id}: conflict in {', '.join(task.conflicts)}", "red")


def _judged(event: journal.TaskJudged) -> Iterator[Line]:
    if not event.HasField("accepted"):
        return
    word = "accepted" if event.accepted else "rejected"
    reason = f": {shortened(event.reason)}" if event.reason else ""
    style = "bold green" if event.accepted else "bold red"
    yield Line(f"{event.task_id} {word} by the {event.judge}{grade_text(event.grade)}{reason}", style)


def _retried(event: journal.AssignmentRetried) -> Iterator[Line]:
    yield Line(f"{event.agent_id} failed (attempt {event.attempt}): {shortened(event.error)}", "red")


def _ended(event: journal.AssignmentEnded) -> Iterator[Line]:
    if event.error:
        yield Line(f"{event.agent_id} failed for the last time: {shortened(event.error)}", "red")


def _lost_lease(event: journal.LeaseLost) -> Iterator[Line]:
    text = f"{event.agent_id} is gone (attempt {event.attempt}): no heartbeat came; its work is offered again"
    yield Line(text, "yellow")


def _risks(event: journal.RisksNoted) -> Iterator[Line]:
    for risk in event.risks:
        yield Line(f"risk: {risk.statement}", "yellow")


def _asked(event: journal.Asked) -> Iterator[Line]:
    yield Line(f"waits for you: {shortened(event.question.text)}", "bold yellow")


_IN_WORDS: Mapping[str, Callable[[Any], Iterator[Line]]] = {
    "planned": _planned,
    "work_handed_in": _worked,
    "stage_failed": _stage_failed,
    "wave_verified": _verified,
    "task_judged": _judged,
    "risks_noted": _risks,
    "asked": _asked,
    "assignment_retried": _retried,
    "assignment_ended": _ended,
    "lease_lost": _lost_lease,
    "budget_held": in_yellow(held_back),
    "account_paused": in_yellow(paused),
    "work_taken_up": in_yellow(taken_up),
}
