"""Who uses the services: somebody who submits, a person who answers, and agents of every temper."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import count
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.services.mock_agents.results import result_for
from pointsman.services.orchestrator.domain.mocking import MockOutcome
from tests.robustness.simulation.direct import Direct
from tests.robustness.simulation.processes import LEASE_SECONDS, World
from tests.robustness.simulation.scope import Scope
from tests.robustness.simulation.told import Told

WISH = "Fix the failing test in src/parser.py and add a regression test"
ENDED = (runs.RUN_STATE_COMPLETE, runs.RUN_STATE_CANCELLED, runs.RUN_STATE_FAILED)
TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.ABORTED)
POLL_WAIT = Duration(seconds=20)
CAPABILITIES = (
    (assignments.CAPABILITY_CODE, assignments.CAPABILITY_RESEARCH),
    (assignments.CAPABILITY_REVIEW, assignments.CAPABILITY_VERIFY, assignments.CAPABILITY_DEBATE),
    (assignments.CAPABILITY_CODE, assignments.CAPABILITY_REVIEW, assignments.CAPABILITY_RESEARCH),
    (assignments.CAPABILITY_PLAN, assignments.CAPABILITY_DESIGN, assignments.CAPABILITY_VERIFY),
)
MOODS = (
    MockOutcome.SUCCESS, MockOutcome.SUCCESS, MockOutcome.SUCCESS, MockOutcome.SUCCESS, MockOutcome.FAILURE,
    MockOutcome.NO_EVIDENCE, MockOutcome.MALFORMED, MockOutcome.FORGED_VERDICT,
)  # fmt: skip
MAX_ANSWERS = 12
CUT_SECONDS = 10.0


class Actors:
    """Everybody outside, each with a channel of their own."""

    def __init__(self, world: World, scope: Scope) -> None:
        self.told = Told()
        self._scope = scope
        self.moody = world.chance.random.random() < 0.6
        self.slowness = world.chance.random.choice((0.05, 0.1, 0.6))
        self._chance = world.chance
        self._numbers = count(1)
        wire: Any = world.wire("orchestrator")
        self._runs: Any = OrchestratorServiceStub(wire)
        self._agents: Any = AgentServiceStub(wire)
        self._world = world
        self._questions: dict[str, int] = {}
        self._busy = 0
        self.over = False
        self.at_rest = False
        """Whether everybody has said what they wanted, and every run there is has ended."""

    def new_key(self) -> str:
        """A new idempotency key."""
        return f"request-{next(self._numbers)}"

    async def insist(self, method: Any, request: Any, tries: int = 6) -> Any:
        """Ask again, with the same key, until there is an answer; None when it was refused or never came."""
        for _ in range(tries):
            try:
                return await method(request, timeout=30.0)
            except grpc.aio.AioRpcError as error:
                if error.code() not in TRANSIENT:
                    self.told.refused += 1
                    return None
            await asyncio.sleep(self._chance.random.random() * 2)
        return None

    async def submit(self) -> None:
        """Start one run."""
        draw = self._chance.random
        number = next(self._numbers)
        request = pb.SubmitRequest(
            request_id=self.new_key(),
            message=f"{WISH} number {number}",
            crew=pb.Crew(best_of=number % 3),
            session_id=draw.choice(("", "", "s1")),
            resume=draw.choice((pb.RESUME_UNSPECIFIED, pb.RESUME_ASK, pb.RESUME_YES)),
            auto_resume=draw.random() < 0.2,
            require_audit=draw.random() < 0.3,
            research_expected=draw.choice((0, 0, 2)),
            budget=runs.Budget(transitions=draw.choice((0, 0, 60)), assignments=draw.choice((0, 0, 4))),
        )
        await asyncio.sleep(draw.random() * 3)
        answered = await self.insist(self._runs.Submit, request, tries=40)
        if answered is not None and answered.HasField("run"):
            self.told.runs[request.request_id] = answered.run.id
            self.told.acknowledged.append((request.request_id, answered.run.id))

    async def meddle(self) -> None:
        """Change what is wanted, or end a run, at some moment."""
        draw = self._chance.random
        await asyncio.sleep(draw.random() * 30)
        for run_id in sorted(self.told.runs.values()):
            if draw.random() < 0.3:
                request: Any = pb.CancelRunRequest(request_id=self.new_key(), run_id=run_id, reason="enough")
                method = self._runs.CancelRun
            else:
                request = pb.ChangeRequirementRequest(request_id=self.new_key(), run_id=run_id, message="and fast")
                method = self._runs.ChangeRequirement
            if await self.insist(method, request) is not None:
                self.told.acknowledged.append((request.request_id, run_id))

    async def person(self) -> None:
        """Look at all runs now and then, and answer what they ask; in the end, end what never ends."""
        pause_seconds = 3.0
        while not self.over:
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(60.0, pause_seconds * 1.3)
            said_all = not self._busy
            listed = await self.insist(self._runs.ListRuns, pb.ListRunsRequest(), tries=1)
            if listed is None:
                continue
            self.at_rest = said_all and all(run.state in ENDED for run in listed.runs)
            for run in listed.runs:
                if run.HasField("question"):
                    await self._answer(run)

    async def _answer(self, run: runs.Run) -> None:
        asked = self._questions[run.id] = self._questions.get(run.id, 0) + 1
        if asked > MAX_ANSWERS:
            cancel = pb.CancelRunRequest(request_id=self.new_key(), run_id=run.id, reason="it asks for ever")
            await self.insist(self._runs.CancelRun, cancel)
            return
        kind = self._chance.random.choice(list(run.question.takes))
        request = pb.AnswerRequest(
            request_id=self.new_key(),
            run_id=run.id,
            question_id=run.question.id,
            answer=kind,
            text="go on",
            confidence=0.9,
        )
        if kind == runs.ANSWER_KIND_RAISE:
            request.budget.CopyFrom(runs.Budget(assignments=200, transitions=5000, wall_clock=Duration(seconds=10**6)))
        if kind in (runs.ANSWER_KIND_RESTART_STAGE, runs.ANSWER_KIND_SKIP_STAGE):
            request.stage = self._chance.random.choice(("DEV", "REVIEW", "TEST"))
        if await self.insist(self._runs.Answer, request) is not None:
            self.told.acknowledged.append((request.request_id, run.id))

    async def work_as(self, number: int) -> None:
        """Poll, work and hand in, well or badly."""
        name = f"agent-{number}"
        can = CAPABILITIES[number % len(CAPABILITIES)]
        wanted = agent.Wanted(capabilities=can, max_leases=self._chance.random.choice((1, 1, 4)))
        while not self.over:
            request = agent.PollRequest(request_id=self.new_key(), agent_id=name, wanted=wanted, wait=POLL_WAIT)
            polled = await self.insist(self._agents.Poll, request, tries=2)
            leases = list(polled.leases) if polled is not None else []
            if leases:
                await self._work(name, leases)
            elif polled is None:
                await asyncio.sleep(1.0)

    async def _work(self, name: str, leases: Sequence[agent.Lease]) -> None:
        draw = self._chance.random
        calm = self._chance.calm or not self.moody
        if not calm and draw.random() < self.slowness:
            await asyncio.sleep(LEASE_SECONDS * 2.5 * draw.random())
        if not calm and draw.random() < 0.1:
            return
        if draw.random() < 0.2:
            keys = [
                agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
                for lease in leases
            ]
            await self.insist(
                self._agents.Heartbeat, agent.HeartbeatRequest(request_id=self.new_key(), agent_id=name, leases=keys)
            )
        for lease in leases:
            if not calm and draw.random() < 0.1:
                await self._steal(name, lease)
            item = result_for(lease, MockOutcome.SUCCESS if calm else draw.choice(MOODS))
            await self._hand_in(name, item)
            if not calm and draw.random() < 0.1:
                await self._hand_in(name, item)

    async def _steal(self, name: str, lease: agent.Lease) -> None:
        """Try everything that a lease is good for under the holder's name, with a secret that is not its own."""
        item = result_for(lease, MockOutcome.SUCCESS)
        assert isinstance(item, agent.Completion)
        item.lease.secret = self._chance.random.choice(("", "lease_" + "0" * 64))
        key, item_id = item.lease, item.lease.assignment_id
        beat = agent.HeartbeatRequest(request_id=self.new_key(), agent_id=name, leases=[key])
        beaten = await self.insist(self._agents.Heartbeat, beat, tries=2)
        if beaten is not None and item_id not in beaten.lost_assignment_ids:
            self.told.stolen.append((item_id, "Heartbeat"))
        failure = agent.Failure(lease=key, error="stolen", returned=self._chance.random.random() < 0.5)
        failing = agent.FailRequest(request_id=self.new_key(), agent_id=name, failures=[failure])
        completing = agent.CompleteRequest(request_id=self.new_key(), agent_id=name, completions=[item])
        for call, request in ((self._agents.Fail, failing), (self._agents.Complete, completing)):
            done = await self.insist(call, request, tries=2)
            if done is not None and done.outcomes[0].accepted:
                self.told.stolen.append((item_id, type(request).__name__))

    async def _hand_in(self, name: str, item: agent.Completion | agent.Failure) -> None:
        if isinstance(item, agent.Failure):
            failing = agent.FailRequest(request_id=self.new_key(), agent_id=name, failures=[item])
            await self.insist(self._agents.Fail, failing)
            return
        request = agent.CompleteRequest(request_id=self.new_key(), agent_id=name, completions=[item])
        done = await self.insist(self._agents.Complete, request)
        for outcome in done.outcomes if done is not None else ():
            if outcome.accepted:
                self.told.taken.append((item.lease.assignment_id, item.lease.epoch, name))

    async def cut_short(self) -> None:
        """Submit, and have had enough at some moment."""
        await self.submit()
        await asyncio.sleep(self._chance.random.random() * CUT_SECONDS)
        for run_id in self.told.runs.values():
            cancel = pb.CancelRunRequest(request_id=self.new_key(), run_id=run_id, reason="enough")
            if await self.insist(self._runs.CancelRun, cancel, tries=40) is not None:
                self.told.acknowledged.append((cancel.request_id, run_id))

    async def _once(self, act: Callable[[], Awaitable[None]]) -> None:
        await act()
        self._busy -= 1
        if self._scope is Scope.DIRECT:
            self.at_rest = self._busy == 0

    @property
    def all(self) -> Sequence[Coroutine[Any, Any, None]]:
        """What everybody does; as many of each as chance will have it."""
        draw = self._chance.random
        once: list[Callable[[], Awaitable[None]]] = [self.submit] * draw.choice((1, 1, 1, 1, 1, 2, 3))
        once += [self.meddle] * draw.choice((0, 0, 0, 1))
        if self._scope is not Scope.WHOLE:
            once = (
                [self.cut_short] if self._scope is Scope.CUT else list(Direct(self, self._world.wire, self._chance).all)
            )
        self._busy = len(once)
        if self._scope is Scope.DIRECT:
            return [*map(self._once, once)]
        agents = [self.work_as(number) for number in range(draw.choice((2, 3, 4)))]
        return [*map(self._once, once), self.person(), *agents]
