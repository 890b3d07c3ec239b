"""What a run waits for."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pointsman.services.orchestrator.domain.enums import Attention, Question, State, Wait, WorkflowStatus
from pointsman.services.orchestrator.domain.run import Run


@dataclass(frozen=True, slots=True)
class AtWork:
    """Who is at work on a run: the holder of a lease and when it was heard of, and how many could take what is open."""

    holder: str = ""
    heard_at_us: int = 0
    agents_able: int = 0


NOBODY = AtWork()
ENDED_AS = {
    State.COMPLETE: Attention.DONE,
    State.FAILED: Attention.FAILED,
    State.CANCELLED: Attention.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whom or what a run waits for, what has to be done, since when, and when something happens by itself."""

    kind: Wait
    who: str
    action: str
    since: datetime
    until: datetime | None


_KINDS = {
    Question.BUDGET: Wait.BUDGET,
    Question.PAUSED: Wait.PAUSE,
    Question.BLOCKED: Wait.DEPENDENCY,
}


def waiting_for(run: Run) -> Waiting | None:
    """A person before an agent, an agent before a peer; nothing after the end."""
    if run.ended:
        return None
    until = run.created_at + timedelta(seconds=run.budget.wall_clock_seconds)
    question = run.question
    if question is not None:
        kind = _KINDS.get(question.kind, Wait.PERSON)
        who = ", ".join(question.subjects) if kind is not Wait.PERSON else "a person"
        return Waiting(kind, who, f"answer question {question.question_id}: {question.text}", question.asked_at, None)
    if run.assignments:
        first = next(iter(run.assignments.values()))
        who = ", ".join(dict.fromkeys(str(item.capability).lower() for item in run.assignments.values()))
        if len(run.resting) == len(run.assignments):
            until = min(rest.until for rest in run.resting.values())
        return Waiting(Wait.AGENT, who, _agent_action(run), first.created_at or run.since, until)
    if run.calls:
        return Waiting(Wait.PEER, next(iter(run.calls.values())), "answer", run.since, until)
    if run.status is State.QUEUE and run.workflow_status is not WorkflowStatus.RUNNING:
        return Waiting(Wait.DEPENDENCY, run.workflow_detail, "become free", run.since, until)
    return Waiting(Wait.TIMER, "timer", "look again", run.since, until)


def attention(run: Run, at_work: AtWork) -> Attention:
    """What the run needs from people: an answer, an agent, or nothing."""
    if run.ended:
        return ENDED_AS[run.status]
    if run.question is not None:
        return Attention.NEEDS_YOU
    is_stuck = run.assignments and not at_work.holder and not at_work.agents_able
    return Attention.STUCK if is_stuck else Attention.WORKING


def _agent_action(run: Run) -> str:
    parts = []
    for item in run.assignments.values():
        about = " ".join(part for part in (item.task_id, item.stage or item.slot) if part)
        rest = run.resting.get(item.assignment_id)
        rests = f" ({rest.account} rests until {rest.until:%Y-%m-%d %H:%M:%S} UTC)" if rest else ""
        parts.append(f"{str(item.purpose).lower()} {about}".strip() + rests)
    if run.held:
        parts.append(f"{len(run.held)} more when the budget has room")
    return "; ".join(parts)[:500]
