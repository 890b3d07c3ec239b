"""The machine of a project's task outcomes: counts failures, rejections and repeated errors, and decides the reaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pointsman.services.chassis.core.machine import Decision, Event, Machine
from pointsman.services.router.domain.debate_verdict import (
    Arguments,
    DebateKind,
    Verdict,
    failure_verdict,
    planning_verdict,
)
from pointsman.services.router.domain.enums import Stakes

KIND = "outcomes"
OPEN = "OPEN"
FORGET_AFTER = timedelta(hours=24)
REMEMBERED_SESSIONS = 64
ESCALATE_AT, DEBATE_AT, REJECTED_AT = 3, 2, 2


class Outcome(StrEnum):
    """The outcome of a task."""

    SUCCESS = "success"
    FAILURE = "failure"
    USER_REJECTED = "user_rejected"
    START_FRESH = "start_fresh"


class Reaction(StrEnum):
    """What follows from an outcome."""

    NONE = "none"
    DEBATE_FAILURE = "debate_failure"
    AUTO_ESCALATE = "auto_escalate"


class Cause(StrEnum):
    """Why a reaction follows, in order of precedence."""

    SECURITY_FAILURE = "security_failure"
    THREE_FAILURES = "three_failures"
    TWO_FAILURES = "two_failures"
    SAME_ERROR_ELSEWHERE = "same_error_elsewhere"
    TWO_REJECTIONS = "two_rejections"


class OutcomeEvent(StrEnum):
    """Journal events of a project's outcomes."""

    TASK_SUCCEEDED = "TASK_SUCCEEDED"
    TASK_FAILED = "TASK_FAILED"
    OUTPUT_REJECTED = "OUTPUT_REJECTED"
    STARTED_FRESH = "STARTED_FRESH"
    DEBATE_RESOLVED = "DEBATE_RESOLVED"


@dataclass(frozen=True, slots=True)
class Track:
    """One task's failures and rejections since its last success."""

    failures: int = 0
    rejections: int = 0
    fingerprint: str = ""
    debated_fingerprint: str = ""
    sessions: tuple[str, ...] = ()
    last_at: datetime | None = None

    def at(self, now: datetime) -> "Track":
        """The track as of now: after 24 hours only the sessions in which it was debated remain."""
        if self.last_at is None or now - self.last_at < FORGET_AFTER:
            return self
        return Track(sessions=self.sessions)

    @property
    def is_clear(self) -> bool:
        """Whether a success would change nothing."""
        return not (self.failures or self.rejections or self.fingerprint or self.debated_fingerprint)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of the whole project."""

    outcomes: int = 0
    debates: int = 0


@dataclass(slots=True)
class Outcomes:
    """State of a project's outcomes: the tally, the loaded tracks, and when each task failed with each error."""

    tally: Tally = field(default_factory=Tally)
    tracks: dict[str, Track] = field(default_factory=dict)
    errors: dict[str, dict[str, datetime]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportOutcome:
    """Reports the outcome of a task."""

    entity_id: str
    task_id: str
    outcome: Outcome
    fingerprint: str = ""
    security: bool = False


@dataclass(frozen=True, slots=True)
class ResolveDebate:
    """Resolves a debate about a task."""

    entity_id: str
    task_id: str
    kind: DebateKind
    session_id: str
    stakes: Stakes
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Reported:
    """Answer to ReportOutcome."""

    reaction: Reaction
    cause: Cause | None
    failures: int
    rejections: int


@dataclass(frozen=True, slots=True)
class Resolved:
    """Answer to ResolveDebate."""

    verdict: Verdict
    rule: str
    stakes: Stakes


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task's track after an outcome or a debate."""

    task_id: str
    track: Track
    reaction: Reaction = Reaction.NONE
    verdict: Verdict | None = None


def outcomes_id(project: str) -> str:
    """The entity id of a project's outcomes."""
    return f"outcomes:{project}"


def decide(state: Outcomes | None, command: Any, now: datetime) -> Decision:
    """Counts an outcome, or resolves a debate."""
    known = state if state is not None else Outcomes()
    source = "" if state is None else OPEN
    track = known.tracks.get(command.task_id, Track()).at(now)
    if isinstance(command, ReportOutcome):
        return _report(known, track, command, now, source)
    return _resolve(track, command, source)


_EVENT_OF = {
    Outcome.SUCCESS: OutcomeEvent.TASK_SUCCEEDED,
    Outcome.FAILURE: OutcomeEvent.TASK_FAILED,
    Outcome.USER_REJECTED: OutcomeEvent.OUTPUT_REJECTED,
    Outcome.START_FRESH: OutcomeEvent.STARTED_FRESH,
}


def _report(known: Outcomes, track: Track, command: ReportOutcome, now: datetime, source: str) -> Decision:
    if command.outcome is Outcome.SUCCESS and track.is_clear:
        return Decision([], Reported(Reaction.NONE, None, 0, 0))
    changed = _counted(track, command, now)
    cause = _cause(known, changed, command, now)
    reaction = REACTION_OF[cause] if cause is not None else Reaction.NONE
    event = Event(_EVENT_OF[command.outcome], source, OPEN, TaskChanged(command.task_id, changed, reaction))
    return Decision([event], Reported(reaction, cause, changed.failures, changed.rejections))


def _counted(track: Track, command: ReportOutcome, now: datetime) -> Track:
    if command.outcome is Outcome.FAILURE:
        return Track(
            track.failures + 1, track.rejections, command.fingerprint, track.debated_fingerprint, track.sessions, now
        )
    if command.outcome is Outcome.USER_REJECTED:
        return Track(
            track.failures, track.rejections + 1, track.fingerprint, track.debated_fingerprint, track.sessions, now
        )
    return Track(sessions=track.sessions, last_at=now)


REACTION_OF: Mapping[Cause, Reaction] = {
    Cause.SECURITY_FAILURE: Reaction.AUTO_ESCALATE,
    Cause.THREE_FAILURES: Reaction.AUTO_ESCALATE,
    Cause.TWO_FAILURES: Reaction.DEBATE_FAILURE,
    Cause.SAME_ERROR_ELSEWHERE: Reaction.DEBATE_FAILURE,
    Cause.TWO_REJECTIONS: Reaction.DEBATE_FAILURE,
}


def _cause(known: Outcomes, track: Track, command: ReportOutcome, now: datetime) -> Cause | None:
    """The first cause that holds."""
    failed = command.outcome is Outcome.FAILURE
    rejected = command.outcome is Outcome.USER_REJECTED
    rows = (
        (Cause.SECURITY_FAILURE, failed and command.security),
        (Cause.THREE_FAILURES, failed and track.failures >= ESCALATE_AT),
        (Cause.TWO_FAILURES, failed and track.failures == DEBATE_AT),
        (Cause.SAME_ERROR_ELSEWHERE, failed and _failed_elsewhere(known, command, now)),
        (Cause.TWO_REJECTIONS, rejected and track.rejections >= REJECTED_AT),
    )
    return next((cause for cause, holds in rows if holds), None)


def _failed_elsewhere(known: Outcomes, command: ReportOutcome, now: datetime) -> bool:
    """Whether another task failed with the same error within 24 hours and has not succeeded since."""
    if not command.fingerprint:
        return False
    failed = known.errors.get(command.fingerprint, {})
    return any(task != command.task_id and now - at < FORGET_AFTER for task, at in failed.items())


def _resolve(track: Track, command: ResolveDebate, source: str) -> Decision:
    debated = track.debated_fingerprint
    if command.kind is DebateKind.PLANNING:
        verdict, rule = planning_verdict(command.arguments, command.stakes)
    else:
        again = bool(track.fingerprint) and track.fingerprint == debated
        verdict, rule = failure_verdict(command.arguments, again)
        debated = track.fingerprint
    sessions = tuple(dict.fromkeys((*track.sessions, command.session_id)))[-REMEMBERED_SESSIONS:]
    debated_in = sessions if command.session_id else track.sessions
    changed = Track(track.failures, track.rejections, track.fingerprint, debated, debated_in, track.last_at)
    event = Event(OutcomeEvent.DEBATE_RESOLVED, source, OPEN, TaskChanged(command.task_id, changed, verdict=verdict))
    return Decision([event], Resolved(verdict, rule, command.stakes))


def apply(state: Outcomes | None, event: Event, at: datetime) -> Outcomes:
    """Applies one event."""
    outcomes = state if state is not None else Outcomes()
    changed: TaskChanged = event.data
    debated = event.name == OutcomeEvent.DEBATE_RESOLVED
    outcomes.tally = Tally(outcomes.tally.outcomes + (not debated), outcomes.tally.debates + debated)
    outcomes.tracks[changed.task_id] = changed.track
    if event.name == OutcomeEvent.TASK_FAILED and changed.track.fingerprint:
        outcomes.errors.setdefault(changed.track.fingerprint, {})[changed.task_id] = at
    elif event.name in (OutcomeEvent.TASK_SUCCEEDED, OutcomeEvent.STARTED_FRESH):
        for failed in outcomes.errors.values():
            failed.pop(changed.task_id, None)
    return outcomes


EVENTS: Mapping[str, type] = dict.fromkeys(OutcomeEvent, TaskChanged)

MACHINE: Machine[Outcomes] = Machine(
    kind=KIND,
    version=1,
    state_type=Outcomes,
    decide=decide,
    apply=apply,
    status=lambda _outcomes: OPEN,
    run_id=lambda _outcomes: "",
    events=EVENTS,
    answers={ReportOutcome: Reported, ResolveDebate: Resolved},
)
