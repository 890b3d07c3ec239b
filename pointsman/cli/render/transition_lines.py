"""Transitions of a run as lines of text."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pointsman._shared.excerpt import names_failure
from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.handoff.v1.work_pb2 import ClaimStatus
from pointsman.api.journal.v1 import run_events_pb2 as journal

LINE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One line and its style."""

    text: str
    style: str = ""


def event_lines(transition: Transition) -> Iterator[Line]:
    """The lines for a transition; most transitions have none."""
    name = transition.run.WhichOneof("event") or ""
    if name in _LINES_OF_EVENT:
        yield from _LINES_OF_EVENT[name](getattr(transition.run, name))
    if transition.from_state != transition.to_state:
        reason = shortened(transition.run.transitioned.reason)
        style = {"COMPLETE": "bold green", "FAILED": "bold red", "CANCELLED": "bold yellow"}.get(
            transition.to_state, ""
        )
        event = _EVENT_LABELS.get(transition.event, transition.event) if reason else transition.event
        yield Line(f"{transition.to_state:<16} {event}{f': {reason}' if reason else ''}", style)


_EVENT_LABELS = {"resource_busy": "waits", "claims_evidence_arrived": "attempts ended"}
"""Labels for events whose names would mislead beside their reason."""


def _planned(event: journal.Planned) -> Iterator[Line]:
    for task in event.plan.tasks:
        yield Line(f"  plan  {task.task_id}: {task.name}", "dim")


def _researched(event: journal.Researched) -> Iterator[Line]:
    usable = "usable" if event.usable else "not usable"
    yield Line(f"  research  {event.slot} by {event.agent_id or 'nobody'}, {usable}", "dim")


def _assigned(event: journal.Assigned) -> Iterator[Line]:
    given = event.assignment
    what = " ".join(part for part in (given.purpose, given.task_id, given.stage, given.slot) if part)
    yield Line(f"  waits for an agent that can {given.capability.lower()}: {what}", "dim")


def _retried(event: journal.AssignmentRetried) -> Iterator[Line]:
    yield Line(f"  {event.agent_id} failed (attempt {event.attempt}): {shortened(event.error)}", "red")


def _lost_lease(event: journal.LeaseLost) -> Iterator[Line]:
    text = f"  {event.agent_id} lost its lease (attempt {event.attempt}): no heartbeat came; offered again"
    yield Line(text, "yellow")


def _ended(event: journal.AssignmentEnded) -> Iterator[Line]:
    if event.end == "DONE":
        yield Line(f"  {event.agent_id} handed in", "dim")
    elif event.error:
        yield Line(f"  {event.agent_id} failed for the last time: {shortened(event.error)}", "red")


def _stage_failed(event: journal.StageFailed) -> Iterator[Line]:
    who = f" by {event.agent_id}" if event.agent_id else ""
    yield Line(f"  {event.task_id} {event.stage} failed{who}: {shortened(event.reason)}", "red")


def _worked(event: journal.WorkHandedIn) -> Iterator[Line]:
    files = ", ".join(event.work.changed_files) or "no file"
    claims = ", ".join(claim.claim_id for claim in event.work.claims) or "nothing"
    yield Line(f"  work  {event.task_id} changed {files}; claims {claims}", "cyan")


def _verified(event: journal.WaveVerified) -> Iterator[Line]:
    for task in event.tasks:
        for claim in task.claims:
            status = ClaimStatus.Name(claim.status).removeprefix("CLAIM_STATUS_").lower()
            detail = f": {shortened(claim.detail)}" if claim.detail else ""
            yield Line(f"  verdict  {claim.claim_id} {status}{detail}", "green" if status == "supported" else "red")
        for criterion in task.criteria:
            text = f"  verdict  {criterion.criterion_id} {'passed' if criterion.passed else 'failed'}"
            yield Line(text, "green" if criterion.passed else "red")
        if task.conflicts:
            yield Line(f"  conflict in {', '.join(task.conflicts)}", "red")


def _judged(event: journal.TaskJudged) -> Iterator[Line]:
    if not event.HasField("accepted"):
        return
    word = "accepted" if event.accepted else "rejected"
    reason = f": {shortened(event.reason)}" if event.reason else ""
    style = "bold green" if event.accepted else "bold red"
    yield Line(f"  {event.task_id} {word} by the {event.judge}{reason}", style)


def held_back(event: journal.BudgetHeld) -> str:
    """What waits for work that runs; nothing where a person is asked instead."""
    given = event.assignment
    what = " ".join(part for part in (given.task_id, given.stage or given.purpose.lower()) if part)
    waits = f"{what} waits: the work that runs holds the rest of the budget ({event.what})"
    return waits if event.by_running else ""


def paused(event: journal.AccountPaused) -> str:
    """Which account a provider has limited, and until when."""
    limit = f"{event.kind.lower()}: {shortened(event.reason)}"
    return f"{event.account} rests until {event.until} ({limit}); no attempt of {event.agent_id} counts"


def taken_up(event: journal.WorkTakenUp) -> str:
    """Who goes on with work that a limit had stopped."""
    why = "the limit is over" if event.account == event.rested else f"{event.rested} rests"
    return f"{event.agent_id} goes on: {why}"


def in_yellow(text_of: Callable[[Any], str], indent: str = "") -> Callable[[Any], Iterator[Line]]:
    """The line of an event whose text may be empty."""

    def lines(event: Any) -> Iterator[Line]:
        text = text_of(event)
        if text:
            yield Line(f"{indent}{text}", "yellow")

    return lines


def _risks(event: journal.RisksNoted) -> Iterator[Line]:
    for risk in event.risks:
        yield Line(f"  risk  {risk.statement}", "yellow")


def _asked(event: journal.Asked) -> Iterator[Line]:
    yield Line(f"  question  {event.question.text}", "bold yellow")


def shortened(text: str) -> str:
    """The first line of a text, the first that names a failure, and the last, each cut behind a word if it is long."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip(" -=")]
    if len(lines) > 3:
        cause = next((f"… {line}" for line in lines[1:-1] if names_failure(line)), "…")
        lines = [lines[0], cause, lines[-1]]
    return " ".join(cut(line) for line in lines)


def cut(line: str, length: int = LINE_LENGTH) -> str:
    """A line in at most so many characters; a longer one ends behind a word, with an ellipsis."""
    if len(line) <= length:
        return line
    head = line[: length - 2]
    return f"{head.rsplit(' ', 1)[0] if ' ' in head else head} …"


_LINES_OF_EVENT: Mapping[str, Callable[[Any], Iterator[Line]]] = {
    "planned": _planned,
    "researched": _researched,
    "assigned": _assigned,
    "assignment_retried": _retried,
    "assignment_ended": _ended,
    "lease_lost": _lost_lease,
    "budget_held": in_yellow(held_back, "  "),
    "account_paused": in_yellow(paused, "  "),
    "work_taken_up": in_yellow(taken_up, "  "),
    "stage_failed": _stage_failed,
    "work_handed_in": _worked,
    "wave_verified": _verified,
    "task_judged": _judged,
    "risks_noted": _risks,
    "asked": _asked,
}
