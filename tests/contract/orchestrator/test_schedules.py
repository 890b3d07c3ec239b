"""Schedules on both databases: durable timers, one run for each time whatever is repeated, and how full a project may be."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random  # noqa: TID251 - all chance of a life comes from its seed
from typing import Any

import pytest
from sqlalchemy import select

from pointsman.api.common.v1.common_pb2 import Page
from pointsman.api.orchestrator.v1 import schedule_pb2 as pb
from pointsman.api.orchestrator.v1.orchestrator_pb2 import Crew, SubmitRequest
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.audit.schedules import prove_schedule
from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.audit import Auditor
from pointsman.services.chassis.engine.deliveries import FiredTimer, PendingEffect, fired_timer, pending_effect
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain import commands as run_commands
from pointsman.services.orchestrator.domain.enums import Call, Capability, State
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.schedules.enums import ScheduleState
from pointsman.services.orchestrator.domain.schedules.machine import START_RUN
from pointsman.services.orchestrator.domain.schedules.model import Schedule
from pointsman.services.orchestrator.domain.views import BranchHead, OfferedRepository
from pointsman.services.orchestrator.loops import Engine
from pointsman.services.orchestrator.servicer import ScheduleServicer
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.submit import SubmitMessage
from tests.contract.orchestrator.orchestrators import caller, orchestrator
from tests.helpers.clock import FakeClock

OURS = (START_RUN, Call.TELL_SCHEDULE)
REPOSITORY = "r" * 40


class FakeRouter:
    """A router that takes everything for work, but one word."""

    async def classify(self, request: decision.ClassifyRequest, _project: str, _traceparent: str) -> Any:
        is_question = request.message.text == "why?"
        mode = decision.MODE_ANSWER if is_question else decision.MODE_ACTION
        return decision.RoutingDecision(decision_id="d1", mode=mode, confidence=decision.CONFIDENCE_STRONG)


class House:
    """A store with its engine and its servicer, driven by hand."""

    def __init__(self, store: OrchestratorStore, clock: FakeClock, limit: int = 3) -> None:
        self.store, self.clock = store, clock
        peers: Any = FakeRouter()
        settings = OrchestratorSettings(max_schedules=limit)
        self.engine = Engine(store, peers, settings)
        self.servicer = ScheduleServicer(store, SubmitMessage(store, peers, settings), settings)

    async def create(self, cron: str = "0 * * * *", message: str = "tidy up", **fields: Any) -> pb.Schedule:
        spec = pb.ScheduleSpec(cron=cron, **fields.pop("spec", {}))
        order = SubmitRequest(request_id="x", message=message, **fields)
        asked = caller()
        request = pb.CreateScheduleRequest(request_id=asked.request_id, spec=spec, order=order)
        return (await self.servicer.CreateSchedule(request, asked)).schedule

    async def schedule(self, schedule_id: str) -> Schedule:
        return (await self.store.schedules.view("local", schedule_id)).schedule

    async def tick(self, *, hours: float) -> None:
        """Lets time go by and fires what is due, twice, as after a crash before the timer was gone."""
        self.clock.advance(hours=hours)
        before = self.timers()
        await self.engine.timers.fire_due()
        for timer in before:
            await self.engine.fire(timer)

    async def deliver(self) -> None:
        """Delivers what waits, each twice, as after a crash between the delivery and its acknowledgement."""
        while effects := self.pending():
            for effect in effects:
                await self.engine.deliver(effect)
                await self.engine.deliver(effect)

    def pending(self) -> list[PendingEffect]:
        table = self.store.store.tables.outbox
        return [one for one in map(pending_effect, self._rows(table)) if one.kind in OURS]

    def timers(self) -> list[FiredTimer]:
        table = self.store.store.tables.timers
        return [one for one in map(fired_timer, self._rows(table)) if one.entity_id.startswith("schedule_")]

    def _rows(self, table: Any) -> Any:
        return self.store.store.database.read_now(lambda link: link.execute(select(table)).mappings().all())

    async def runs(self) -> list[Run]:
        table = self.store.children.index
        return [(await self.store.view("local", row["entity_id"])).run for row in self._rows(table)]

    async def end(self, run: Run) -> None:
        await self.store.ledger.submit(caller(), run_commands.Cancel(run.run_id, "done"))
        await self.deliver()

    async def sees(self, **heads: str) -> None:
        """A verifier polls, which sees these commits at the branches."""
        branches = tuple(BranchHead(branch, commit) for branch, commit in heads.items())
        offers = (OfferedRepository(REPOSITORY, branches=branches),)
        verifier, able = Holder("local", LOCAL, "verifier"), frozenset({Capability.VERIFY})
        await self.store.agents.touch(verifier, able, frozenset({REPOSITORY}), offers=offers)

    def violations(self) -> list[str]:
        auditor = Auditor(self.store.store, {"schedule": prove_schedule})
        return self.store.store.database.read_now(lambda link: [str(one) for one in auditor.violations(link)])


async def test_each_time_starts_one_run_however_often_a_step_is_repeated(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, clock=clock) as store:
        house = House(store, clock)
        made = await house.create(labels={"team": "a"})
        for number in (1, 2, 3):
            await house.tick(hours=1)
            await house.deliver()
            runs = await house.runs()
            assert len(runs) == number
            await house.end(max(runs, key=lambda one: one.order.scheduled.nominal_at))  # type: ignore[union-attr]
        first = min(runs, key=lambda one: one.order.scheduled.nominal_at)  # type: ignore[union-attr]
        assert first.order.labels == {"team": "a", "schedule": made.id}
        assert first.order.scheduled is not None
        assert first.order.scheduled.nominal_at == datetime(2026, 1, 1, 1, tzinfo=UTC)
        told = await house.schedule(made.id)
        assert (told.started, told.missed, [one.outcome for one in told.starts]) == (3, 0, ["CANCELLED"] * 3)
        assert house.violations() == []


async def test_a_control_plane_that_was_away_makes_up_for_all_one_after_the_other(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, clock=clock) as store:
        house = House(store, clock)
        made = await house.create(spec={"missed": pb.MISSED_POLICY_ALL})
        await house.tick(hours=3.5)
        for number in (1, 2, 3):
            await house.deliver()
            runs = await house.runs()
            assert len(runs) == number, "the next one waits for the one before"
            await house.end(next(one for one in runs if not one.ended))
        assert (await house.schedule(made.id)).started == 3
        assert house.violations() == []


async def test_a_run_starts_from_the_head_of_its_branch_that_a_verifier_sees(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, clock=clock) as store:
        house = House(store, clock)
        made = await house.create(repository=Repository(id=REPOSITORY, branch="main"))
        await house.tick(hours=1)
        (effect,) = house.pending()
        with pytest.raises(Refusal, match="no verifier that is present") as refused:
            await house.engine.deliver(effect)
        assert refused.value.reason is Reason.UNAVAILABLE, "it is tried again"
        await house.sees(old="b" * 40, main="a" * 40)
        await house.deliver()
        (run,) = await house.runs()
        assert run.order.base_commit == "a" * 40
        await house.end(run)
        await house.tick(hours=1)
        await house.sees(main="c" * 40)
        await house.deliver()
        assert {one.order.base_commit for one in await house.runs()} == {"a" * 40, "c" * 40}
        assert (await house.schedule(made.id)).started == 2


async def test_what_was_due_when_a_schedule_was_stopped_does_not_start(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, clock=clock) as store:
        house = House(store, clock)
        made = await house.create()
        await house.tick(hours=1)
        await house.servicer.PauseSchedule(pb.PauseScheduleRequest(schedule_id=made.id, reason="no"), caller())
        await house.deliver()
        assert await house.runs() == []
        (start,) = (await house.schedule(made.id)).starts
        assert "paused" in start.reason
        await house.servicer.TriggerSchedule(pb.TriggerScheduleRequest(schedule_id=made.id), caller())
        await house.deliver()
        (run,) = await house.runs()
        await house.servicer.DeleteSchedule(pb.DeleteScheduleRequest(schedule_id=made.id), caller())
        await house.end(run)
        assert run.status is not State.FAILED, "a live run goes on"
        told = await house.schedule(made.id)
        assert (told.status, told.starts[-1].outcome) == (ScheduleState.DELETED, "CANCELLED")
        assert house.timers() == []
        assert house.violations() == []
        clock.advance(days=31)
        await store.store.write(lambda link: store.schedules.forget_deleted(link, 2**60))
        with pytest.raises(Refusal, match="no schedule"):
            await house.schedule(made.id)
        assert house.violations() == []


async def test_a_project_has_as_many_schedules_as_it_may_and_lists_them_by_page(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, clock=clock) as store:
        house = House(store, clock)
        made = []
        for _ in range(3):
            clock.advance(seconds=1)
            made.append((await house.create()).id)
        with pytest.raises(Refusal, match="delete one first"):
            await house.create()
        await house.servicer.DeleteSchedule(pb.DeleteScheduleRequest(schedule_id=made[0]), caller())
        clock.advance(seconds=1)
        fourth = (await house.create()).id
        request = pb.ListSchedulesRequest(page=Page(page_size=2))
        first = await house.servicer.ListSchedules(request, caller())
        request.page.page_token = first.next_page_token
        second = await house.servicer.ListSchedules(request, caller())
        assert [one.id for one in (*first.schedules, *second.schedules)] == [fourth, made[2], made[1]]
        elsewhere = await house.servicer.ListSchedules(pb.ListSchedulesRequest(), caller(project="other"))
        assert not elsewhere.schedules


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"cron": "0 3 * *"}, "spec.cron: takes five fields"),
        ({"spec": {"time_zone": "Mars"}}, "spec.time_zone: 'Mars' is no time zone"),
        ({"session_id": "s"}, "order.session_id"),
        ({"crew": Crew(reserved=True)}, "order.crew.reserved"),
        ({"brings_plan": True}, "order.brings_plan"),
        ({"labels": {"schedule": "x"}}, "order.labels"),
        ({"message": "why?"}, "order.message: starts no run"),
    ],
)
async def test_an_order_that_could_not_run_by_night_is_refused_by_day(
    database_url: str, fields: dict[str, Any], says: str
) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, clock=clock) as store:
        with pytest.raises(Refusal, match=says.replace(".", r"\.").split(" is")[0]):
            await House(store, clock).create(**fields)


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_is_repeated_lost_or_set_back_no_time_starts_two_runs(seed: int, tmp_path: Path) -> None:
    """A life from a seed: the clock jumps both ways, steps are lost or done twice, people pause, trigger and cancel."""
    chance, clock = Random(seed), FakeClock()
    for _ in range(3):  # the process is killed twice: what it had not committed is gone
        async with orchestrator(f"sqlite:///{tmp_path}/life.db", clock=clock) as store:
            house = House(store, clock, limit=4)
            if not (await house.servicer.ListSchedules(pb.ListSchedulesRequest(), caller())).schedules:
                for missed in (pb.MISSED_POLICY_SKIP, pb.MISSED_POLICY_ONE, pb.MISSED_POLICY_ALL):
                    overlap = chance.choice((pb.OVERLAP_POLICY_SKIP, pb.OVERLAP_POLICY_ALLOW))
                    await house.create(message=f"tidy {missed}", spec={"missed": missed, "overlap": overlap})
            for _ in range(12):
                await _live_on(house, chance)
    async with orchestrator(f"sqlite:///{tmp_path}/life.db", clock=clock) as store:
        house = House(store, clock)
        await house.deliver()
        runs = [one.order.scheduled for one in await house.runs()]
        assert len(set(runs)) == len(runs) > 0, "one run for each time"
        listed = (await house.servicer.ListSchedules(pb.ListSchedulesRequest(), caller())).schedules
        assert sum(one.started for one in listed) == len(runs)
        assert house.violations() == []


async def _live_on(house: House, chance: Random) -> None:
    """One step of a life."""
    step = chance.randrange(8)
    if step < 4:
        await house.tick(hours=chance.choice((0.3, 1, 1, 2.5, 30, -0.5)))
    elif step < 6:
        await house.deliver()
    elif live := [one for one in await house.runs() if not one.ended]:
        await house.end(chance.choice(live))
    else:
        listed = (await house.servicer.ListSchedules(pb.ListSchedulesRequest(), caller())).schedules
        one, asked = chance.choice(listed), caller()
        house.clock.advance(microseconds=chance.randrange(1, 1_000_000))  # a trigger is no time of the calendar
        with suppress(Refusal):
            await house.servicer.TriggerSchedule(
                pb.TriggerScheduleRequest(request_id=asked.request_id, schedule_id=one.id), asked
            )
