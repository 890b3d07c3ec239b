"""What agents print: kept by lease up to a bound, masked, streamed, listed as transcripts, and never journalled."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1.handoff_pb2 import ArtifactRef
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.client import Client
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.status import refusal_from
from pointsman.services.orchestrator.store.outputs import MAX_TAIL
from tests.contract.orchestrator.test_service import RESEARCH, key, poll
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY, Plane, plane

MOST = 16_384
DIGEST = "a" * 64


async def beat(here: Plane, lease: agent.Lease, *tails: agent.OutputTail) -> agent.HeartbeatResponse:
    """A heartbeat of the agent `ada` with what it printed."""
    request = agent.HeartbeatRequest(
        request_id=here.request_id(), agent_id="ada", leases=[key(lease)], outputs=list(tails)
    )
    answer: agent.HeartbeatResponse = await here.agents.Heartbeat(request)
    return answer


def tail(lease: agent.Lease, offset: int, text: str, **more: Any) -> agent.OutputTail:
    """A piece of the output under a lease."""
    return agent.OutputTail(assignment_id=lease.assignment.id, offset=offset, text=text, **more)


async def chunks(here: Plane, run_id: str, task_id: str = "") -> list[agent.OutputChunk]:
    """What is kept."""
    request = agent.WatchOutputRequest(run_id=run_id, task_id=task_id)
    return [answer.chunk async for answer in here.agents.WatchOutput(request)]


async def leased(here: Plane) -> tuple[str, agent.Lease]:
    """A run, and the lease that `ada` holds for it."""
    run_id = (await here.submit()).id
    return run_id, await poll(here, "ada", RESEARCH)


async def test_pieces_are_joined_and_nothing_is_kept_twice(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run_id, lease = await leased(here)
        for offset, text in ((0, "one\n"), (4, "two\n"), (4, "two\n"), (0, "one\ntwo\nthree\n")):
            await beat(here, lease, tail(lease, offset, text))
        (chunk,) = await chunks(here, run_id)
        assert (chunk.text, chunk.offset, chunk.epoch, chunk.agent_id) == ("one\ntwo\nthree\n", 0, lease.epoch, "ada")
        assert chunk.assignment_id == lease.assignment.id
        assert await chunks(here, run_id, "T9") == []


async def test_of_a_long_output_the_end_is_kept_and_a_gap_shows(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run_id, lease = await leased(here)
        for number in range(5):
            await beat(here, lease, tail(lease, number * MOST, str(number) * MOST))
        (chunk,) = await chunks(here, run_id)
        assert (len(chunk.text), chunk.offset) == (MAX_TAIL, MOST)
        await beat(here, lease, tail(lease, 100 * MOST, "later"))
        (chunk,) = await chunks(here, run_id)
        assert (chunk.text, chunk.offset) == ("later", 100 * MOST)


async def test_a_piece_that_is_too_long_is_refused_and_the_longest_is_not(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        _, lease = await leased(here)
        await beat(here, lease, tail(lease, 0, "x" * MOST))
        for wrong in ([tail(lease, 0, "x" * (MOST + 1))], [tail(lease, 0, "x")] * 33, [tail(lease, -1, "x")]):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await beat(here, lease, *wrong)
            assert refusal_from(caught.value).reason is Reason.INVALID_FIELD


async def test_secrets_are_masked_on_arrival_too_and_what_follows_stays_in_place(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        run_id, lease = await leased(here)
        text = "key ghp_0123456789abcdefghijABCDEFGHIJ\n"
        await beat(here, lease, tail(lease, 0, text), tail(lease, len(text), "next\n"))
        (chunk,) = await chunks(here, run_id)
        assert "ghp_" not in chunk.text
        assert chunk.text.endswith("next\n")
        assert len(chunk.text) == len(text) + 5


async def test_nobody_prints_under_a_lease_that_is_not_held(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run_id, lease = await leased(here)
        stale = agent.Lease(assignment=lease.assignment, epoch=lease.epoch + 1)
        assert (await beat(here, stale, tail(lease, 0, "forged"))).lost_assignment_ids == [lease.assignment.id]
        other = agent.OutputTail(assignment_id=f"{run_id}.a99", text="forged")
        await beat(here, lease, other)
        assert await chunks(here, run_id) == []


async def test_a_watcher_gets_what_comes_until_the_run_has_ended(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run_id, lease = await leased(here)
        seen: list[str] = []

        async def watch() -> None:
            async for chunk in Client(here.channel).agents.output(run_id, follow=True):
                seen.append(chunk.text)  # noqa: PERF401 - it is looked at while it grows

        watching = asyncio.create_task(watch())
        for number in range(3):
            await beat(here, lease, tail(lease, 2 * number, f"{number}\n"))

            async def arrived(count: int = number + 1) -> bool:
                return len("".join(seen)) == 2 * count

            await eventually(arrived)
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=run_id, reason="enough"))
        await watching
        assert "".join(seen) == "0\n1\n2\n"


async def test_a_transcript_is_listed_with_its_assignment(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run_id, lease = await leased(here)
        whole = ArtifactRef(sha256=DIGEST, size_bytes=7, media_type="text/plain")
        await beat(here, lease, tail(lease, 0, "the end", transcript=whole))
        await beat(here, lease, tail(lease, 7, ""))
        listed = (await here.agents.ListAssignments(agent.ListAssignmentsRequest(run_id=run_id))).assignments
        (transcript,) = next(item for item in listed if item.id == lease.assignment.id).transcripts
        assert (transcript.artifact, transcript.epoch, transcript.agent_id) == (whole, lease.epoch, "ada")


async def test_output_is_in_no_journal(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        run_id, lease = await leased(here)
        request = pb.ListTransitionsRequest(run_id=run_id, page=common.Page(page_size=1000))
        before = await here.runs.ListTransitions(request)
        await beat(here, lease, tail(lease, 0, "printed"))
        after = await here.runs.ListTransitions(request)
        assert len(after.transitions) == len(before.transitions)


async def test_output_of_a_run_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await chunks(here, "run_none")
        assert refusal_from(caught.value).reason is Reason.NOT_FOUND
