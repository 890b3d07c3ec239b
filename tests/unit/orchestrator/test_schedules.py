"""Schedules as pure decisions: cron × time zone × clock changes, missed and overlapping times, and what a crash repeats."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.machine import CancelTimer, Decision, SetTimer
from pointsman.services.orchestrator.domain.schedules import commands
from pointsman.services.orchestrator.domain.schedules.apply import apply
from pointsman.services.orchestrator.domain.schedules.calendar import (
    MAX_TIMES,
    next_after,
    problem_of_cron,
    problem_of_time_zone,
    times_until,
)
from pointsman.services.orchestrator.domain.schedules.enums import MissedPolicy, OverlapPolicy, ScheduleState
from pointsman.services.orchestrator.domain.schedules.machine import decide
from pointsman.services.orchestrator.domain.schedules.model import Schedule, Spec, Template, start_key

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def at(text: str) -> datetime:
    """A moment in UTC, such as `2026-03-29 01:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NEXT = (
    ("0 3 * * *", "UTC", "2026-11-18 02:59:59", "2026-11-18 03:00"),
    ("0 3 * * *", "UTC", "2026-11-18 03:00", "2026-11-19 03:00"),
    ("0 3 * * *", BERLIN, "2026-01-10 12:00", "2026-01-11 02:00"),
    ("0 3 * * *", BERLIN, "2026-07-10 12:00", "2026-07-11 01:00"),
    ("30 2 * * *", BERLIN, "2026-03-28 12:00", "2026-03-29 01:00"),  # 02:30 is left out: right after the change
    ("30 2 * * *", BERLIN, "2026-03-29 01:00", "2026-03-30 00:30"),
    ("30 2 * * *", BERLIN, "2026-10-24 12:00", "2026-10-25 00:30"),  # 02:30 comes twice: the first
    ("30 2 * * *", BERLIN, "2026-10-25 00:30", "2026-10-26 01:30"),  # and not the second
    ("30 2 * * *", BERLIN, "2026-10-25 01:10", "2026-10-26 01:30"),  # 02:10 for the second time: it was there already
    ("*/30 * * * *", BERLIN, "2026-10-25 00:30", "2026-10-25 01:00"),  # what goes by the hour goes on
    ("30 1 * * *", NEW_YORK, "2026-10-31 12:00", "2026-11-01 05:30"),
    ("30 2 * * *", NEW_YORK, "2026-03-07 12:00", "2026-03-08 07:00"),
    ("15 2 * * *", LORD_HOWE, "2026-10-03 12:00", "2026-10-03 15:30"),  # half an hour is left out there
    ("0 9 * * MON-FRI", NEW_YORK, "2026-11-20 20:00", "2026-11-23 14:00"),
    ("0 0 29 2 *", "UTC", "2026-01-01 00:00", "2028-02-29 00:00"),
    ("0 0 L * *", "UTC", "2026-02-01 00:00", "2026-02-28 00:00"),
)  # fmt: skip


@pytest.mark.parametrize(("cron", "zone", "moment", "expected"), NEXT)
def test_the_next_time_of_a_line_in_a_time_zone_also_where_clocks_change(
    cron: str, zone: str, moment: str, expected: str
) -> None:
    assert next_after(Spec(cron, zone), at(moment)) == at(expected)


CRONS = st.sampled_from(["0 3 * * *", "30 2 * * *", "*/20 * * * *", "15,45 1-3 * * *", "0 */6 * * *", "30 1 * * SUN"])
ZONES = st.sampled_from(["UTC", BERLIN, NEW_YORK, LORD_HOWE, "Asia/Kolkata", "America/St_Johns"])
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(max_examples=300, deadline=None)
@given(CRONS, ZONES, MOMENTS, st.integers(1, 6))
def test_the_times_that_are_over_are_the_next_ones_one_after_the_other(
    cron: str, zone: str, begin: datetime, steps: int
) -> None:
    spec, times = Spec(cron, zone), []
    time = begin
    for _ in range(steps):
        time = next_after(spec, time)
        times.append(time)
    assert times == sorted(set(times)), "time goes on"
    for late in (timedelta(), timedelta(minutes=40)):
        found = times_until(spec, times[0], times[-1] + late)
        assert found[:steps] == tuple(times)
        assert all(one <= times[-1] + late for one in found)


@pytest.mark.parametrize(
    ("cron", "says"),
    [
        ("0 3 * *", "five fields"),
        ("0 0 3 * * *", "five fields"),
        ("61 3 * * *", "bad minute"),
        ("0 3 * * FUNDAY", "bad day-of-week"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("0 0 30 2 MON", ""),
        ("@daily", "five fields"),
        ("0 3 * * *", ""),
    ],
)
def test_a_line_that_cannot_be_read_says_which_field(cron: str, says: str) -> None:
    assert says in problem_of_cron(cron)
    assert bool(says) is bool(problem_of_cron(cron))


@pytest.mark.parametrize("name", ["Mars/Base", "localtime", "../../etc/passwd", "Europe", ""])
def test_only_names_of_the_time_zone_database_are_taken(name: str) -> None:
    assert "is no time zone" in problem_of_time_zone(name)
    assert problem_of_time_zone(BERLIN) == ""


class Life:
    """A schedule that is told things, and what it asked for."""

    def __init__(self, spec: Spec, now: str = "2026-11-18 00:00") -> None:
        self.now = at(now)
        self.schedule: Schedule | None = None
        self.asked: list[datetime] = []
        self.timer: datetime | None = None
        self.tell(commands.Create("s", "local", spec, Template("tidy up", "{}"), "me", 10))

    @property
    def it(self) -> Schedule:
        assert self.schedule is not None
        return self.schedule

    def tell(self, command: Any) -> Decision:
        decision = decide(self.schedule, command, self.now)
        for event in decision.events:
            self.schedule = apply(self.schedule, event, self.now)
        self.asked += [effect.data.nominal_at for effect in decision.effects]
        for timer in decision.timers:
            self.timer = timer.due_at if isinstance(timer, SetTimer) else None
            assert isinstance(timer, SetTimer | CancelTimer)
        return decision

    def due(self, moment: str) -> None:
        self.now = at(moment)
        self.tell(commands.ComeDue("s"))

    def started(self, moment: datetime) -> None:
        self.tell(commands.RunStarted("s", moment, f"run {moment}"))

    def ended(self, moment: datetime, outcome: str = "COMPLETE") -> None:
        self.tell(commands.RunEnded("s", moment, f"run {moment}", outcome))


HOURLY = "0 * * * *"
DAY = 86_400.0
MISSED: tuple[tuple[MissedPolicy, float, str, list[int], int], ...] = (
    # policy, catch-up window, when the control plane is there again → hours that start a run, hours that are missed
    (MissedPolicy.SKIP, DAY, "05:00:01", [5], 4),
    (MissedPolicy.SKIP, DAY, "05:10", [], 5),
    (MissedPolicy.ONE, DAY, "05:00:01", [5], 4),
    (MissedPolicy.ONE, DAY, "05:10", [5], 4),
    (MissedPolicy.ONE, 300.0, "05:10", [], 5),
    (MissedPolicy.ALL, DAY, "05:10", [1, 2, 3, 4, 5], 0),
    (MissedPolicy.ALL, 2.5 * 3600, "05:10", [3, 4, 5], 2),
    (MissedPolicy.ALL, 300.0, "05:10", [], 5),
    (MissedPolicy.ALL, 300.0, "05:00:01", [5], 4),
)


@pytest.mark.parametrize("case", MISSED)
@pytest.mark.parametrize("overlap", OverlapPolicy)
def test_missed_times_are_made_up_for_as_the_policy_says(
    case: tuple[MissedPolicy, float, str, list[int], int], overlap: OverlapPolicy
) -> None:
    policy, window, back, hours, missed = case
    life = Life(Spec(HOURLY, missed=policy, overlap=overlap, catch_up_seconds=window))
    life.due(f"2026-11-18 {back}")
    wanted = [at(f"2026-11-18 {hour:02}:00") for hour in hours]
    if overlap is OverlapPolicy.ALLOW:
        assert life.asked == wanted, "all at once"
    for number, time in enumerate(wanted, 1):
        assert overlap is OverlapPolicy.ALLOW or life.asked == wanted[:number], "one after the other"
        life.started(time)
        life.ended(time)
    assert (life.asked, life.it.missed, life.it.started) == (wanted, missed, len(wanted))
    assert (life.it.next_at, life.timer) == (at("2026-11-18 06:00"), at("2026-11-18 06:00"))
    assert not life.it.is_busy


def test_a_schedule_of_every_minute_that_was_away_for_a_month_makes_up_for_a_hundred() -> None:
    life = Life(Spec("* * * * *", missed=MissedPolicy.ALL, overlap=OverlapPolicy.ALLOW, catch_up_seconds=31 * DAY))
    life.due("2026-12-18 00:00:05")
    assert len(life.asked) == MAX_TIMES
    assert life.asked[-1] == at("2026-12-18 00:00")


def test_a_time_that_comes_while_an_earlier_run_is_live_is_left_or_not_as_the_policy_says() -> None:
    for overlap, asked, overlapped in ((OverlapPolicy.SKIP, 1, 1), (OverlapPolicy.ALLOW, 2, 0)):
        life = Life(Spec(HOURLY, overlap=overlap))
        life.due("2026-11-18 01:00:00")
        life.started(at("2026-11-18 01:00"))
        life.due("2026-11-18 02:00:00")
        assert (len(life.asked), life.it.overlapped) == (asked, overlapped)
        life.ended(at("2026-11-18 01:00"))
        life.ended(at("2026-11-18 02:00"))
        life.due("2026-11-18 03:00:00")
        assert len(life.asked) == asked + 1


def test_a_run_that_ends_before_its_start_was_recorded_counts_once() -> None:
    life = Life(Spec(HOURLY))
    life.due("2026-11-18 01:00:00")
    time = at("2026-11-18 01:00")
    life.ended(time, "FAILED")
    life.started(time)
    life.ended(time, "FAILED")
    (start,) = life.it.starts
    assert (life.it.started, start.outcome, life.it.is_busy) == (1, "FAILED", False)


def test_a_refused_start_is_recorded_and_the_next_of_the_backlog_has_its_turn() -> None:
    life = Life(Spec(HOURLY, missed=MissedPolicy.ALL))
    life.due("2026-11-18 02:10")
    life.tell(commands.StartRefused("s", at("2026-11-18 01:00"), "no room"))
    assert life.asked == [at("2026-11-18 01:00"), at("2026-11-18 02:00")]
    assert (life.it.refused, life.it.starts[0].reason) == (1, "no room")


def test_a_paused_schedule_starts_nothing_and_makes_up_for_nothing() -> None:
    life = Life(Spec(HOURLY, missed=MissedPolicy.ALL))
    life.tell(commands.Pause("s", "holidays"))
    assert (life.timer, life.it.next_at, life.it.said) == (None, None, "holidays")
    life.due("2026-11-18 05:10")
    assert life.asked == []
    life.tell(commands.Resume("s"))
    assert (life.timer, life.it.said) == (at("2026-11-18 06:00"), "")
    life.tell(commands.Trigger("s"))
    assert life.asked == [at("2026-11-18 05:10")]
    life.tell(commands.Delete("s"))
    assert (life.it.status, life.timer) == (ScheduleState.DELETED, None)


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ((), commands.Resume("s")),
        ((commands.Pause("s"),), commands.Pause("s")),
        ((commands.Delete("s"),), commands.Delete("s")),
        ((commands.Delete("s"),), commands.Trigger("s")),
        ((commands.Delete("s"),), commands.Resume("s")),
        ((commands.Trigger("s"),), commands.Trigger("s")),
    ],
)
def test_what_a_schedule_cannot_do_now_is_refused_with_what_it_can(before: tuple[Any, ...], command: Any) -> None:
    life = Life(Spec(HOURLY))
    for one in before:
        life.tell(one)
    with pytest.raises(Refusal) as refused:
        life.tell(command)
    assert refused.value.reason is Reason.STATE_FORBIDS
    assert "allowed" in refused.value.metadata


def test_a_project_has_so_many_schedules_and_no_more() -> None:
    full = commands.Create("s", "local", Spec(HOURLY), Template("", "{}"), "me", 10, others=10)
    with pytest.raises(Refusal, match="delete one first"):
        decide(None, full, at("2026-11-18 00:00"))


def test_each_time_has_a_key_of_its_own() -> None:
    keys = {start_key("s", at("2026-11-18 00:00") + timedelta(seconds=number)) for number in range(100)}
    assert len(keys) == 100
    assert all(len(key) <= 128 for key in {start_key("schedule_" + "0" * 26, at("2026-11-18 00:00"))})
