"""Many calls over one stream: each is answered as the call of its own would be, and nothing waits for another."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import status_pb2

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import session_pb2 as pb
from pointsman.api.orchestrator.v1.session_pb2_grpc import SessionServiceStub
from pointsman.client import Client, Terms, Unavailable
from pointsman.client.errors import NotAllowed, Overloaded
from pointsman.client.session import Session
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.rpc.status import refusal_from
from pointsman.services.chassis.runtime.service import Running, start
from pointsman.services.chassis.telemetry.recording import ServerCall, call_recorder
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.servicer import AgentServicer
from tests.contract.guarded import guarded
from tests.contract.test_orchestrator_handing_in import handing_in, researching, take, wanted
from tests.contract.test_orchestrator_service import good_report
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.helpers.statuses import status_of_call
from tests.scenarios.planes import NOBODY, Plane, builder, clients, plane

LONG = Duration(seconds=50)
CALLS = {"poll": "Poll", "heartbeat": "Heartbeat", "complete": "Complete", "fail": "Fail"}
KEY = agent.LeaseKey(assignment_id="run_x.1", epoch=1)


class Conversation:
    """One stream, spoken by hand."""

    def __init__(self, here: Plane) -> None:
        stub: Any = SessionServiceStub(here.channel)
        self.call: Any = stub.Converse()
        self._answers: dict[int, pb.Answered] = {}

    async def say(self, *asks: pb.Ask) -> None:
        await self.call.write(pb.ConverseRequest(asks=asks))

    async def answer(self, number: int) -> pb.Answered:
        while number not in self._answers:
            message = await self.call.read()
            assert message is not grpc.aio.EOF, await self.call.code()
            self._answers |= {one.number: one for one in message.answers}
        return self._answers.pop(number)

    async def ask(self, number: int, **call: Any) -> pb.Answered:
        await self.say(pb.Ask(number=number, **call))
        return await self.answer(number)


def polling(here: Plane, agent_id: str = "ada", **terms: Any) -> agent.PollRequest:
    return agent.PollRequest(request_id=here.request_id(), agent_id=agent_id, wanted=wanted(), **terms)


async def test_a_lease_is_taken_kept_given_up_and_handed_in_over_one_stream(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        (run_id,) = await researching(here)
        talk = Conversation(here)
        (first,) = (await talk.ask(2**62, poll=polling(here))).poll.leases
        key = agent.LeaseKey(assignment_id=first.assignment.id, epoch=first.epoch)
        beat = agent.HeartbeatRequest(request_id=here.request_id(), agent_id="ada", leases=[key])
        assert list((await talk.ask(0, heartbeat=beat)).heartbeat.lost_assignment_ids) == []
        completing = handing_in(here, good_report(first))
        completing.next.CopyFrom(wanted())
        done = (await talk.ask(-5, complete=completing)).complete
        assert [outcome.accepted for outcome in done.outcomes] == [True]
        (second,) = done.leases
        key = agent.LeaseKey(assignment_id=second.assignment.id, epoch=second.epoch)
        failure = agent.Failure(lease=key, error="enough")
        failing = agent.FailRequest(request_id=here.request_id(), agent_id="ada", failures=[failure])
        assert [one.accepted for one in (await talk.ask(1, fail=failing)).fail.outcomes] == [True]
        assert (await here.agents.Complete(completing)).outcomes == done.outcomes, "a call repeats what was said"
        assert (await here.get(run_id)).usage.tokens == 11


async def test_what_is_said_together_is_answered_each_for_itself_and_a_wait_holds_up_nobody(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        await researching(here)
        talk = Conversation(here)
        coder = agent.Wanted(capabilities=[assignments.CAPABILITY_CODE])
        waiting = agent.PollRequest(request_id="w", agent_id="carl", wanted=coder, wait=LONG)
        polls = [pb.Ask(number=number, poll=polling(here, f"ada-{number}")) for number in range(1, 4)]
        await talk.say(pb.Ask(number=9, poll=waiting), *polls, pb.Ask(number=4))
        leases = [lease for number in range(1, 4) for lease in (await talk.answer(number)).poll.leases]
        assert len({lease.assignment.id for lease in leases}) == 3
        status = status_pb2.Status.FromString((await talk.answer(4)).status)
        assert (status.code, "call" in status.message) == (grpc.StatusCode.INVALID_ARGUMENT.value[0], True)


async def test_a_call_whose_time_is_over_fails_alone_and_the_stream_goes_on(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        session = Session(here.channel)
        patient = asyncio.create_task(session.Poll(polling(here, "ben", wait=LONG), timeout=scaled(40)))
        with pytest.raises(Unavailable) as caught:
            await session.Poll(polling(here, wait=LONG), timeout=0.2)
        assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
        await researching(here)
        assert len((await patient).leases) == 1
        await session.close()


BAD: Sequence[tuple[str, Any]] = (
    ("poll", agent.PollRequest()),
    ("poll", agent.PollRequest(request_id="a\0b", agent_id="ada", wanted=wanted())),
    ("poll", agent.PollRequest(request_id="a", agent_id="ada", wanted=wanted(), wait=Duration(seconds=56))),
    ("poll", agent.PollRequest(request_id="a", agent_id="ada", wanted=wanted(), wait=Duration(nanos=-(2**31)))),
    ("poll", agent.PollRequest(request_id="engine:1", agent_id="ada", wanted=wanted())),
    ("heartbeat", agent.HeartbeatRequest(request_id="a" * 129, agent_id="ada")),
    ("complete", agent.CompleteRequest(request_id="a", agent_id="ada")),
    ("complete", agent.CompleteRequest(request_id="a", agent_id="ada", completions=[agent.Completion()])),
    ("fail", agent.FailRequest(request_id="a", agent_id="ada", failures=[agent.Failure(lease=KEY)])),
)


async def test_what_a_call_refuses_is_refused_alike_in_a_conversation(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        talk = Conversation(here)
        for number, (kind, request) in enumerate(BAD):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await getattr(here.agents, CALLS[kind])(request)
            said = status_pb2.Status.FromString((await talk.ask(number, **{kind: request})).status)
            assert said == status_of_call(refused.value), request


async def test_a_refusal_that_cannot_be_written_is_answered_as_the_bug_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unspeakable(*_: Any) -> Any:
        raise Refusal(Reason.NOT_FOUND, "half a letter: \ud800")

    monkeypatch.setattr(AgentServicer, "Heartbeat", unspeakable)
    async with plane(tmp_path, NOBODY) as here:
        beat = agent.HeartbeatRequest(request_id="h", agent_id="ada")
        status = status_pb2.Status.FromString((await Conversation(here).ask(1, heartbeat=beat)).status)
        assert status.code == grpc.StatusCode.INTERNAL.value[0]


async def test_what_is_said_has_its_span_below_the_transition_that_it_led_to(tmp_path: Path) -> None:
    noted = call_recorder.start()
    try:
        async with plane(tmp_path, NOBODY) as here:
            await researching(here)
            talk = Conversation(here)
            (lease,) = (await talk.ask(1, poll=polling(here))).poll.leases
            noted.take(noted.limit)
            assert (await talk.ask(2, complete=handing_in(here, good_report(lease)))).complete.outcomes[0].accepted
            served = [one for one in noted.take(noted.limit)[0] if isinstance(one, ServerCall)]
    finally:
        call_recorder.stop()
    (place,) = [one.place for one in served if one.method.endswith("AgentService/Complete")]
    assert (place[0][3:35], place[1]) == (lease.assignment.traceparent[3:35], lease.assignment.run_id)


async def test_bytes_that_are_no_message_end_the_stream_and_what_was_said_before_is_answered(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        call: Any = here.channel.stream_stream("/pointsman.api.orchestrator.v1.SessionService/Converse")()
        ask = pb.Ask(number=7, poll=polling(here, wait=Duration(nanos=200_000_000)))
        await call.write(pb.ConverseRequest(asks=[ask]).SerializeToString())
        await call.write(b"\xff\xff")
        (answer,) = pb.ConverseResponse.FromString(await call.read()).answers
        assert (answer.number, answer.WhichOneof("answer")) == (7, "poll")
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call.read()
        assert refusal_from(ended.value).reason is Reason.MALFORMED_MESSAGE


async def test_a_message_of_too_many_asks_ends_the_stream_before_work_is_made_of_them(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        talk = Conversation(here)
        await talk.say(*(pb.Ask() for _ in range(50_000)))
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await talk.call.read()
        refusal = refusal_from(ended.value)
        assert (refusal.reason, refusal.metadata["field"]) == (Reason.INVALID_FIELD, "asks")
        most = Conversation(here)
        await most.say(*(pb.Ask(number=number) for number in range(256)))
        assert {(await most.answer(number)).WhichOneof("answer") for number in range(256)} == {"status"}


async def test_whoever_has_said_all_is_told_everything_and_then_it_ends(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        talk = Conversation(here)
        await talk.say(*(pb.Ask(number=n, poll=polling(here, wait=Duration(nanos=10_000_000 * n))) for n in range(20)))
        await talk.call.done_writing()
        assert {(await talk.answer(n)).WhichOneof("answer") for n in range(20)} == {"poll"}
        assert await talk.call.read() is grpc.aio.EOF
        assert await talk.call.code() is grpc.StatusCode.OK


async def test_whoever_hangs_up_is_given_nothing_any_more(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        talk = Conversation(here)
        gone = agent.PollRequest(request_id="gone", agent_id="gone", wanted=wanted(), wait=LONG)
        await talk.say(pb.Ask(number=1, poll=gone))
        await talk.ask(2, poll=polling(here))
        talk.call.cancel()
        await researching(here, slots=1)

        async def is_left() -> list[agent.Lease]:
            return await take(here, 1)

        assert await eventually(is_left), "the one report is for somebody who listens"


class Stoppable:
    """A control plane whose end is in the test's hands."""

    def __init__(self, running: Running) -> None:
        self._running: Running | None = running
        self.address = running.address

    async def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.stop()


@asynccontextmanager
async def served(data: Path, port: int = 0, **settings: Any) -> AsyncIterator[Stoppable]:
    build = builder(data, NOBODY, OrchestratorSettings())
    there = Stoppable(await start(build, ServerSettings(port=port, drain_seconds=600.0, **settings)))
    try:
        yield there
    finally:
        await there.stop()


async def test_a_server_that_stops_answers_what_was_said_and_tells_who_waits_to_come_back(tmp_path: Path) -> None:
    async with served(tmp_path) as running, open_channel(running.address) as channel:
        here = clients(channel)
        talk = Conversation(here)
        await talk.say(pb.Ask(number=1, poll=polling(here, wait=LONG)))
        assert (await talk.ask(2, poll=polling(here, "eve"))).WhichOneof("answer") == "poll"
        stopping = asyncio.create_task(running.stop())
        status = status_pb2.Status.FromString((await talk.answer(1)).status)
        assert status.code == grpc.StatusCode.UNAVAILABLE.value[0]
        assert any(detail.TypeName() == "google.rpc.RetryInfo" for detail in status.details)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await talk.call.read()
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        await stopping


async def test_a_client_asks_again_over_another_stream_where_one_breaks(tmp_path: Path) -> None:
    async with served(tmp_path) as running, open_channel(running.address) as channel:
        client = Client(channel)
        async with client.agents.session() as agents:
            assert await agents.poll("ada", wanted(), 0) == []
            waiting = asyncio.create_task(agents.poll("ada", wanted(), 20))
            await agents.heartbeat("ada", [])
            port = int(running.address.rpartition(":")[2])
            await running.stop()
            async with served(tmp_path, port) as again, open_channel(again.address) as other:
                here = clients(other)
                await here.submit(research_expected=1)
                (lease,) = await waiting
                assert (await agents.complete("ada", good_report(lease))).accepted
        with pytest.raises(Unavailable):
            await client.on(patience_seconds=0.1).agents.poll("ada", wanted(), 0)


async def test_too_much_at_once_is_refused_with_a_time_in_the_stream_too(tmp_path: Path) -> None:
    async with served(tmp_path, max_streams=3) as running, open_channel(running.address) as channel:
        async with Client(channel, Terms(patience_seconds=0.0)).agents.session() as agents:
            polls = [asyncio.create_task(agents.poll(f"ada-{number}", wanted(), 0.5)) for number in range(5)]
            outcomes = await asyncio.gather(*polls, return_exceptions=True)
        refused = [one for one in outcomes if isinstance(one, Overloaded)]
        assert len(refused) == 2
        assert all(one.retry_after_seconds for one in refused)


async def test_a_token_that_runs_out_in_the_middle_is_worth_nothing_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        claims = {
            "sub": "alice",
            "roles": ["agent"],
            "projects": ["local"],
            "exp": int(SystemClock().now().timestamp()) + 2,
        }
        terms = Terms(token=there.authority.token(claims), patience_seconds=0.0)
        credentials = grpc.ssl_channel_credentials(there.authority.certificate.read_bytes())
        channel = grpc.aio.secure_channel(there.address, credentials)
        async with channel, Client(channel, terms).agents.session() as agents:
            assert await agents.poll("ada", wanted(), 0) == []

            async def is_refused() -> bool:
                try:
                    await agents.heartbeat("ada", [])
                except NotAllowed:
                    return True
                return False

            await eventually(is_refused)
