"""Routes the thinking workflow: a table over a snapshot of the latch and the five artifacts gives the next step."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import re2

COMMAND = "thinking"
LATCH_AGE = timedelta(hours=1)
CLOCK_SKEW = timedelta(minutes=5)
BLOCKER, TRAIL, RESEARCH, DELTA, PLAN = (
    f"{name}.latest.yaml" for name in ("blocker", "trail", "research", "delta", "plan")
)
FULL_STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("thingking", (BLOCKER, TRAIL)),
    ("thingking_web", (RESEARCH, DELTA, PLAN)),
)
"""The steps of `thinking full` in order, with the artifacts that each has to produce."""

_SECRET = re2.compile(
    r"://|-----BEGIN|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}"
    r"|\bglpat-[\w-]{12,}|\bxox[abprs]-[\w-]{8,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\beyJ[\w-]{8,}\.[\w-]+"
    r"|\b(?:Bearer|Basic) [\w.~+/-]{8,}|\b[A-Fa-f0-9]{32,}\b"
)
_WORD_END = re2.compile(r"[^A-Za-z0-9+/=]+")
_MIXED = re2.compile(r"^[\w+/=.-]{20,}$")


class FileState(StrEnum):
    """What the client found at the path of a file."""

    ABSENT = "absent"
    UNREADABLE = "unreadable"
    PARSED = "parsed"


class Status(StrEnum):
    """Status of an artifact or envelope; empty where an artifact has none that is known."""

    UNKNOWN = ""
    OK = "OK"
    ERROR = "ERROR"


class Need(StrEnum):
    """Needs of a blocker that route to a step."""

    RESEARCH = "RESEARCH"
    REPLAN = "REPLAN"


class Route(StrEnum):
    """The command of the next step."""

    THINGKING = "thingking"
    THINGKING_WEB = "thingking_web"


class ErrorCode(StrEnum):
    """Why the workflow stops, or what it warns of."""

    MISSING_ARTIFACT = "MISSING_ARTIFACT"
    SEARCH_FAILED = "SEARCH_FAILED"
    STALE_LOCK = "STALE_LOCK"
    SECRET_LEAK = "SECRET_LEAK"


@dataclass(frozen=True, slots=True)
class Latch:
    """The failure latch."""

    state: FileState = FileState.ABSENT
    created_at: datetime | None = None
    process_alive: bool = False


@dataclass(frozen=True, slots=True)
class Artifact:
    """The fields of an artifact that the table reads."""

    state: FileState = FileState.ABSENT
    status: Status = Status.UNKNOWN
    created_at: datetime | None = None
    needs: tuple[Need, ...] = ()
    finished: bool = False
    env_check: tuple[tuple[str, str], ...] = ()
    """Names with their values; a name may occur more than once with different values."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the decision depends on."""

    latch: Latch = Latch()
    blocker: Artifact = Artifact()
    trail: Artifact = Artifact()
    research: Artifact = Artifact()
    delta: Artifact = Artifact()
    plan: Artifact = Artifact()

    def artifacts(self) -> tuple[tuple[str, Artifact], ...]:
        """The five artifacts by file name."""
        return (
            (BLOCKER, self.blocker),
            (TRAIL, self.trail),
            (RESEARCH, self.research),
            (DELTA, self.delta),
            (PLAN, self.plan),
        )


@dataclass(frozen=True, slots=True)
class Envelope:
    """The answer in the format of the thinking commands."""

    command: str
    timestamp: datetime
    status: Status
    error_code: ErrorCode | None
    warn: str
    missing_inputs: tuple[str, ...]
    artifacts_read: tuple[str, ...]
    artifacts_written: tuple[str, ...]
    routed_to: Route | None
    next: str
    rule: str
    reason: str = ""
    """Why this step comes next; empty in envelopes that were stored before the field existed."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: its condition, route, reason and messages."""

    name: str
    condition: str
    holds: Callable[[Snapshot, datetime], bool]
    route: Route | None
    reason: str
    next: str
    error: ErrorCode | None = None
    status: Status = Status.OK
    warn: str = ""
    missing: Callable[[Snapshot], tuple[str, ...]] = lambda _snapshot: ()


def route_thinking(snapshot: Snapshot, now: datetime) -> Envelope:
    """Decides the next step by the first row that holds."""
    row = next(row for row in TABLE if row.holds(snapshot, now))
    return Envelope(
        command=COMMAND,
        timestamp=now,
        status=row.status,
        error_code=row.error,
        warn="; ".join(filter(None, (row.warn, _odd_values(snapshot)))),
        missing_inputs=row.missing(snapshot),
        artifacts_read=tuple(name for name, artifact in snapshot.artifacts() if artifact.state is FileState.PARSED),
        artifacts_written=(),
        routed_to=row.route,
        next=row.next,
        rule=row.name,
        reason=row.reason,
    )


def is_secret(value: str) -> bool:
    """Whether a value looks like a URL, a key or a token."""
    if _SECRET.search(value) is not None:
        return True
    letters = any(letter.isalpha() for letter in value)
    return letters and any(letter.isdigit() for letter in value) and _MIXED.search(value) is not None


def is_secret_name(name: str) -> bool:
    """Whether the name of a variable looks like a secret; each of its words is checked by itself, so that long names pass."""
    return _SECRET.search(name) is not None or any(map(is_secret, _WORD_END.split(name)))


def _odd_values(snapshot: Snapshot) -> str:
    """A warning with the names in env_check that are neither SET nor UNSET; values and names like secrets are left out."""
    odd = {name for name, value in _checked(snapshot) if value not in ("SET", "UNSET") and not is_secret_name(name)}
    return f"env_check is neither SET nor UNSET: {', '.join(sorted(odd))}" if odd else ""


def _leaks(snapshot: Snapshot, _now: datetime) -> bool:
    return any(is_secret(value) or is_secret_name(name) for name, value in _checked(snapshot))


def _checked(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    return tuple(pair for _, artifact in snapshot.artifacts() for pair in artifact.env_check)


def _search_failed(snapshot: Snapshot, _now: datetime) -> bool:
    return snapshot.research.state is FileState.PARSED and snapshot.research.status is Status.ERROR


def _research_unreadable(snapshot: Snapshot, _now: datetime) -> bool:
    return snapshot.research.state is FileState.UNREADABLE


def _latch_active(snapshot: Snapshot, now: datetime) -> bool:
    latch = snapshot.latch
    if latch.state is not FileState.PARSED or latch.created_at is None or not latch.process_alive:
        return False
    return -CLOCK_SKEW <= now - latch.created_at < LATCH_AGE


def _latch_present(snapshot: Snapshot, _now: datetime) -> bool:
    return snapshot.latch.state is not FileState.ABSENT


def _no_blocker(snapshot: Snapshot, _now: datetime) -> bool:
    return snapshot.blocker.state is FileState.ABSENT


def _blocker_unreadable(snapshot: Snapshot, _now: datetime) -> bool:
    return snapshot.blocker.state is FileState.UNREADABLE


def _needs_research(snapshot: Snapshot, _now: datetime) -> bool:
    return bool(snapshot.blocker.needs) and not (_research_ok(snapshot) and _research_newer(snapshot))


def _research_ok(snapshot: Snapshot) -> bool:
    return snapshot.research.state is FileState.PARSED and snapshot.research.status is Status.OK


def _research_newer(snapshot: Snapshot) -> bool:
    """Whether the research may be newer than the blocker; an unknown time counts as newer."""
    made, blocked = snapshot.research.created_at, snapshot.blocker.created_at
    return made is None or blocked is None or made > blocked


def _next_unreadable(snapshot: Snapshot, _now: datetime) -> bool:
    return _research_ok(snapshot) and FileState.UNREADABLE in (snapshot.delta.state, snapshot.plan.state)


def _unfinished(snapshot: Snapshot, _now: datetime) -> bool:
    return _research_ok(snapshot) and not (_finished(snapshot.delta) and _finished(snapshot.plan))


def _finished(artifact: Artifact) -> bool:
    return artifact.state is FileState.PARSED and artifact.finished


def _ready(snapshot: Snapshot, _now: datetime) -> bool:
    return _research_ok(snapshot)


def _always(_snapshot: Snapshot, _now: datetime) -> bool:
    return True


def _missing(snapshot: Snapshot) -> tuple[str, ...]:
    """The artifact that is missing to continue: research if there is none, else a blocker with needs."""
    return (RESEARCH,) if snapshot.research.state is FileState.ABSENT else (BLOCKER,)


def _missing_next(snapshot: Snapshot) -> tuple[str, ...]:
    after = ((DELTA, snapshot.delta), (PLAN, snapshot.plan))
    return tuple(name for name, artifact in after if artifact.state is FileState.UNREADABLE)


_STOP = Status.ERROR
_UNREADABLE = "Artifact cannot be parsed - cannot continue"
_UNPARSED = "repair or remove what cannot be parsed, then route again"

TABLE: tuple[Row, ...] = (
    Row(
        "secret_leak", "a value or a name in env_check holds ://, or has the shape of a key or token", _leaks,
        None, "Secret found in env_check - cannot continue", "remove the secret from env_check, replace the credential, then route again", ErrorCode.SECRET_LEAK, _STOP,
    ),
    Row(
        "search_failed", "research has status ERROR", _search_failed,
        None, "Upstream error - cannot continue", "look at the research's error; nothing goes on before", ErrorCode.SEARCH_FAILED, _STOP,
    ),
    Row(
        "research_unreadable", "research cannot be parsed", _research_unreadable,
        None, _UNREADABLE, _UNPARSED, ErrorCode.MISSING_ARTIFACT, _STOP, "", lambda _snapshot: (RESEARCH,),
    ),
    Row(
        "latch_active", "latch present, its process alive, younger than 1 h", _latch_active,
        Route.THINGKING, "Recent failure detected - need blocker analysis",
        "run /thingking: a recent failure needs a blocker analysis",
    ),
    Row(
        "latch_stale", "latch present otherwise: 1 h old or older, process gone, unreadable", _latch_present,
        Route.THINGKING, "Stale lock detected", "run /thingking; clean the latch up by hand", ErrorCode.STALE_LOCK, Status.OK,
        "STALE_LOCK: the latch is stale; remove it by hand once nothing needs it",
    ),
    Row(
        "no_blocker", "blocker missing", _no_blocker,
        Route.THINGKING, "No blocker card exists", "run /thingking: there is no blocker card",
    ),
    Row(
        "blocker_unreadable", "blocker cannot be parsed", _blocker_unreadable,
        None, _UNREADABLE, _UNPARSED, ErrorCode.MISSING_ARTIFACT, _STOP, "", lambda _snapshot: (BLOCKER,),
    ),
    Row(
        "needs_research", "blocker needs RESEARCH or REPLAN, and no research OK is newer than it", _needs_research,
        Route.THINGKING_WEB, "Blocker needs external research", "run /thingking_web: the blocker needs research",
    ),
    Row(
        "next_unreadable", "research OK, and delta or plan cannot be parsed", _next_unreadable,
        None, _UNREADABLE, _UNPARSED, ErrorCode.MISSING_ARTIFACT, _STOP, "", _missing_next,
    ),
    Row(
        "unfinished", "research OK, and delta missing or not complete, or plan missing or not ready", _unfinished,
        Route.THINGKING_WEB, "Research complete, continue with delta/plan",
        "run /thingking_web: research is complete, go on with delta and plan",
    ),
    Row(
        "ready", "research OK, delta complete, plan ready", _ready,
        None, "Research, delta and plan complete - nothing left to think about", "execute the plan",
    ),
    Row(
        "nothing_to_go_on", "anything else", _always,
        None, "Nothing to go on - the next step cannot be inferred",
        "write what the blocker needs, then route again", ErrorCode.MISSING_ARTIFACT, _STOP, "", _missing,
    ),
)  # fmt: skip
"""The whole decision table; docs/concepts/thinking.md is printed from it."""
