"""A worker keeps its leases alive, hands in once, survives its own code, and stops when told to."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.client import Client
from pointsman.worker import GiveUp, Job, Worker
from pointsman.worker.results import stage_result
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled, within
from tests.unit.worker.agents import Exchange, exchange, lease

RESEARCH = work.ResearchRequest(slot=work.ResearchSlot(id="s1", question="why?"))
REPORT = handoff.ResearchReport(slot="s1", confidence=0.9)


@asynccontextmanager
async def researching(handler: Callable[[Job], Any]) -> AsyncIterator[tuple[Exchange, Worker]]:
    """A worker with one researcher, at work."""
    async with exchange() as (plane, client):
        worker = Worker("box", ["repo1"])
        worker.researcher(handler)
        serving = asyncio.create_task(worker.serve(client))
        yield plane, worker
        worker.stop()
        async with within(10):
            await serving


async def test_an_async_handler_gets_the_work_and_its_result_is_handed_in_under_the_lease() -> None:
    async def handler(job: Job) -> handoff.ResearchReport:
        assert job.work.slot.question == "why?"
        return REPORT

    async with researching(handler) as (plane, _):
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))
        request = await plane.completed.get()
    assert request.agent_id == "box-researcher"
    key = request.completions[0].lease
    assert (key.assignment_id, key.epoch, key.secret) == ("a1", 7, "lease_1")
    assert request.completions[0].research == REPORT
    assert list(plane.polls[0].wanted.repository_ids) == ["repo1"]


async def test_a_plain_function_runs_in_a_thread_and_does_not_stop_the_heart() -> None:
    release = threading.Event()

    def handler(_job: Job) -> handoff.ResearchReport:
        release.wait(scaled(20))
        return REPORT

    async with researching(handler) as (plane, _):
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))

        async def beaten() -> bool:
            return plane.beats >= 2

        await eventually(beaten)
        release.set()
        assert (await plane.completed.get()).completions[0].research == REPORT


@pytest.mark.parametrize(
    ("error", "told", "permanent"),
    [
        (ValueError("broken"), "ValueError: broken", False),
        (GiveUp("not for me"), "not for me", False),
        (GiveUp("for nobody", permanent=True), "for nobody", True),
    ],
)
async def test_what_a_handler_raises_gives_the_assignment_up_and_the_worker_lives(
    error: Exception, told: str, permanent: bool
) -> None:
    errors = [error]

    async def handler(_job: Job) -> handoff.ResearchReport:
        if errors:
            raise errors.pop()
        return REPORT

    async with researching(handler) as (plane, _):
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))
        failure = (await plane.failed.get()).failures[0]
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, "a2", research=RESEARCH))
        await plane.completed.get()
    assert (failure.error, failure.permanent) == (told, permanent)


async def test_a_result_of_the_wrong_kind_gives_the_assignment_up() -> None:
    async def handler(_job: Job) -> str:
        return "done, believe me"

    async with researching(handler) as (plane, _):
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))
        assert "cannot return a str" in (await plane.failed.get()).failures[0].error


async def test_a_lost_lease_ends_the_work_and_nothing_is_handed_in() -> None:
    cancelled = asyncio.Event()

    async def handler(_job: Job) -> handoff.ResearchReport:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return REPORT

    async with researching(handler) as (plane, _):
        plane.lost.add("a1")
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))
        async with within(10):
            await cancelled.wait()
    assert plane.completed.empty()
    assert plane.failed.empty()


async def test_a_stopped_worker_finishes_what_is_in_hand_and_polls_no_more() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def handler(_job: Job) -> handoff.ResearchReport:
        started.set()
        await release.wait()
        return REPORT

    async with researching(handler) as (plane, worker):
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))
        async with within(10):
            await started.wait()
        worker.stop()
        release.set()
        await plane.completed.get()
    assert len(plane.polls) == 1


async def test_a_cancelled_worker_gives_its_work_back_at_once() -> None:
    started = asyncio.Event()

    async def handler(_job: Job) -> handoff.ResearchReport:
        started.set()
        await asyncio.Event().wait()
        return REPORT

    async with exchange() as (plane, client):
        await served_and_cancelled(client, handler, plane, started)
        failure = (await plane.failed.get()).failures[0]
        assert (failure.error, failure.returned) == ("the worker was stopped", True)


async def served_and_cancelled(
    client: Client, handler: Callable[[Job], Any], plane: Exchange, started: asyncio.Event
) -> None:
    worker = Worker("box")
    worker.researcher(handler)
    serving = asyncio.create_task(worker.serve(client))
    await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))
    async with within(10):
        await started.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_each_role_polls_under_an_id_of_its_own() -> None:
    async def handler(_job: Job) -> handoff.ResearchReport:
        return REPORT

    async with exchange() as (plane, client):
        worker = Worker("box")
        for role in (worker.planner, worker.critic, worker.researcher, worker.designer, worker.coder, worker.reviewer):
            role(handler)
        serving = asyncio.create_task(worker.serve(client))

        async def all_there() -> bool:
            return len({poll.agent_id for poll in plane.polls}) == 6

        await eventually(all_there)
        worker.stop()
        async with within(10):
            await serving
    assert {poll.agent_id for poll in plane.polls} == {
        f"box-{role}" for role in ("planner", "critic", "researcher", "designer", "coder", "reviewer")
    }


def test_a_decision_in_a_stage_becomes_its_route() -> None:
    retry = handoff.ReviewDecision(
        decision=handoff.REVIEW_VERDICT_RETRY, feedback=[handoff.Feedback(key="k", statement="no test")]
    )
    route = stage_result(retry).route  # type: ignore[attr-defined]
    assert (route.verdict, route.hint) == ("FAIL", "no test")
    passed = stage_result(handoff.ReviewDecision(decision=handoff.REVIEW_VERDICT_PASS))
    assert passed.route.verdict == "PASS"  # type: ignore[attr-defined]


async def test_what_an_agent_prints_is_sent_while_it_works_and_in_order() -> None:
    release = asyncio.Event()

    async def handler(job: Job) -> handoff.ResearchReport:
        job.transcript.write(b"looks at the files\n")
        await release.wait()
        job.transcript.write(b"found it")
        return REPORT

    async with researching(handler) as (plane, _):
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))

        async def arrived() -> bool:
            return bool(plane.outputs)

        await eventually(arrived)
        assert (plane.outputs[0].assignment_id, plane.outputs[0].text) == ("a1", "looks at the files\n")
        release.set()
        assert (await plane.completed.get()).completions[0].research == REPORT


async def test_work_is_handed_in_also_where_its_transcript_cannot_be_kept() -> None:
    def handler(job: Job) -> handoff.ResearchReport:
        job.transcript.write(b"no artifact service is there\n")
        return REPORT

    async with researching(handler) as (plane, _):
        await plane.leases.put(lease(assignments.PURPOSE_RESEARCH, research=RESEARCH))
        assert (await plane.completed.get()).completions[0].research == REPORT
