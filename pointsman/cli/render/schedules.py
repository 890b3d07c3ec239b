"""Schedules for people."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.orchestrator.v1 import schedule_pb2 as pb

HEADER = f"{'SCHEDULE':<18}  {'STATE':<7}  {'WHEN':<30}  {'NEXT':<22}  {'RUNS':<5}  WHAT"
SHORT_ID = 18
INDENT = "  "
WAITS_FOR = "for the run before it, for room in the project, or for a worker with the branch (`pointsman agents`)"


def schedule_table(schedules: Sequence[pb.Schedule]) -> Iterator[str]:
    """A header and a line per schedule, or one line that says how to begin."""
    if not schedules:
        yield 'no schedules; `pointsman schedule "…" --cron "0 3 * * *"` makes one'
        return
    yield HEADER
    for one in schedules:
        when = f"{one.spec.cron} {one.spec.time_zone}"
        line = f"{one.id[:SHORT_ID]:<18}  {_state(one):<7}  {when:<30}  {_next(one):<22}  {one.started:<5}"
        yield f"{line}  {' '.join(one.order.message.split())[:60]}"


def schedule_lines(one: pb.Schedule) -> Iterator[str]:
    """Everything that a person has to know about a schedule."""
    yield f"{one.id}  {_state(one)}  {one.spec.cron} {one.spec.time_zone}"
    yield f"{INDENT}{' '.join(one.order.message.split())[:200]}"
    if one.order.HasField("repository"):
        base = one.order.repository.branch or one.order.repository.base_commit[:12]
        yield f"{INDENT}starts from {base} of repository {one.order.repository.id[:12]}"
    missed, overlap = (_word(pb.MissedPolicy.Name(one.spec.missed)), _word(pb.OverlapPolicy.Name(one.spec.overlap)))
    hours = one.spec.catch_up.seconds / 3600
    yield f"{INDENT}missed times: {missed}, for {hours:g} hours; while a run is live: {overlap}"
    if one.HasField("next_at"):
        yield f"{INDENT}next: {_next(one)}"
    if one.reason:
        yield f"{INDENT}{_state(one).lower()}: {one.reason}"
    counts = f"{one.started} started, {one.missed} missed, {one.overlapped} overlapping, {one.refused} refused"
    yield f"{INDENT}{counts}; made by {one.created_by} on {one.created_at.ToDatetime(UTC):%Y-%m-%d}"
    for waiting in one.waiting:
        yield f"{INDENT}waits: the run of {_time(waiting, one)}; {WAITS_FOR}"
    for start in one.starts:
        yield f"{INDENT}{_time(start.nominal_at, one)}  {start.run_id or 'no run'}  {_outcome(start)}"


def _outcome(start: pb.ScheduledStart) -> str:
    return start.reason or start.outcome or "at work"


def _state(one: pb.Schedule) -> str:
    return pb.ScheduleState.Name(one.state).removeprefix("SCHEDULE_STATE_")


def _word(name: str) -> str:
    return name.rpartition("_")[2].lower()


def _next(one: pb.Schedule) -> str:
    return _time(one.next_at, one) if one.HasField("next_at") else "-"


def _time(at: Timestamp, one: pb.Schedule) -> str:
    """A time as the schedule's own clock shows it."""
    local: datetime = at.ToDatetime(UTC).astimezone(ZoneInfo(one.spec.time_zone))
    return f"{local:%Y-%m-%d %H:%M %Z}"
