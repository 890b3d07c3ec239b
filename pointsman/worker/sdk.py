"""The worker: polls for what its roles can do, keeps the leases alive, hands in, and stops when told to."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.client import CallFailed, Client, Unavailable, connect
from pointsman.worker.results import completion

MAX_ERROR = 4000
HAND_IN_PATIENCE_SECONDS = 600.0
POLL_SECONDS = 20.0
AWAY_SECONDS = 2.0
MIN_BEAT_SECONDS, MAX_BEAT_SECONDS = 0.5, 20.0

log = logging.getLogger("pointsman.worker")

Handler = Callable[["Job"], Any]


class GiveUp(Exception):
    """An assignment that this agent cannot do; permanent when nobody can."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


@dataclass(slots=True)
class Job:
    """One assignment in an agent's hands; `work` is what is asked, by the lease's purpose."""

    client: Client
    agent_id: str
    lease: pb.Lease
    usage: Usage

    @property
    def assignment(self) -> assignments.Assignment:
        """The assignment."""
        return self.lease.assignment

    @property
    def work(self) -> Any:
        """What is asked."""
        return getattr(self.lease, str(self.lease.WhichOneof("work")))

    @property
    def key(self) -> pb.LeaseKey:
        """The lease's name."""
        return pb.LeaseKey(assignment_id=self.assignment.id, epoch=self.lease.epoch)


@dataclass(frozen=True, slots=True)
class Role:
    """Something that the worker can do, under an agent id of its own."""

    name: str
    capability: assignments.Capability.ValueType
    handler: Handler


class Worker:
    """An agent with one or more roles; each role is a function from a job to its result."""

    def __init__(self, name: str, repository_ids: Sequence[str] = (), capacity: int = 1) -> None:
        self.name = name
        self.repository_ids = tuple(repository_ids)
        self._capacity = capacity
        self._roles: list[Role] = []
        self._stopping = asyncio.Event()

    def planner(self, handler: Handler) -> Handler:
        """Makes and patches plans (`Plan`), answers remarks (`FeedbackAnswers`)."""
        return self.add("planner", assignments.CAPABILITY_PLAN, handler)

    def critic(self, handler: Handler) -> Handler:
        """Judges plans (`ReviewDecision` with feedback)."""
        return self.add("critic", assignments.CAPABILITY_DEBATE, handler)

    def researcher(self, handler: Handler) -> Handler:
        """Finds things out (`ResearchReport`)."""
        return self.add("researcher", assignments.CAPABILITY_RESEARCH, handler)

    def designer(self, handler: Handler) -> Handler:
        """Makes designs (`DetailDesign`)."""
        return self.add("designer", assignments.CAPABILITY_DESIGN, handler)

    def coder(self, handler: Handler) -> Handler:
        """Changes files (`CoderResult`, or `StageResult`)."""
        return self.add("coder", assignments.CAPABILITY_CODE, handler)

    def reviewer(self, handler: Handler) -> Handler:
        """Judges work (`ReviewDecision`, or `StageResult` for a stage)."""
        return self.add("reviewer", assignments.CAPABILITY_REVIEW, handler)

    def verifier(self, handler: Handler) -> Handler:
        """Merges a wave and runs its proofs (`VerificationReport`)."""
        return self.add("verifier", assignments.CAPABILITY_VERIFY, handler)

    def add(self, name: str, capability: assignments.Capability.ValueType, handler: Handler) -> Handler:
        """Give the worker a role."""
        self._roles.append(Role(name, capability, handler))
        return handler

    @property
    def agent_ids(self) -> tuple[str, ...]:
        """The ids under which it polls, one per role."""
        return tuple(f"{self.name}-{role.name}" for role in self._roles)

    def stop(self) -> None:
        """Take no more work; what is in hand is finished and handed in."""
        self._stopping.set()

    async def serve(self, client: Client) -> None:
        """Work until stopped."""
        async with asyncio.TaskGroup() as group:
            for role in self._roles:
                for _ in range(self._capacity):
                    group.create_task(self._serve_role(client, role))

    def main(self, address: str) -> None:
        """Work for the control plane at an address until SIGINT or SIGTERM; the second one ends at once."""

        async def work() -> None:
            loop = asyncio.get_running_loop()
            task = asyncio.current_task()
            assert task is not None

            def stop() -> None:
                if self._stopping.is_set():
                    task.cancel()
                self.stop()

            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop)
            async with connect(address) as client:
                await self.serve(client)

        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(work())

    async def _serve_role(self, client: Client, role: Role) -> None:
        agent_id = f"{self.name}-{role.name}"
        wanted = pb.Wanted(capabilities=[role.capability], repository_ids=self.repository_ids, max_leases=1)
        while not self._stopping.is_set():
            for lease in await self._poll(client, agent_id, wanted):
                await _do(Job(client, agent_id, lease, Usage()), role.handler)

    async def _poll(self, client: Client, agent_id: str, wanted: pb.Wanted) -> Sequence[pb.Lease]:
        """Wait for work or for the stop; a control plane that is away is waited for."""
        polling = asyncio.create_task(client.agents.poll(agent_id, wanted, POLL_SECONDS))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((polling, stopping), return_when=asyncio.FIRST_COMPLETED)
            return await polling if polling.done() else ()
        except Unavailable as failure:
            log.warning("%s: the control plane is away (%s)", agent_id, failure)
            await asyncio.wait((stopping,), timeout=AWAY_SECONDS)
            return ()
        finally:
            polling.cancel()
            stopping.cancel()


async def _do(job: Job, handler: Handler) -> None:
    log.info("%s: takes %s", job.agent_id, describe(job.assignment))
    working = asyncio.create_task(_call(handler, job))
    beating = asyncio.create_task(_beat(job, working))
    try:
        result = await working
    except asyncio.CancelledError:
        if not beating.done():
            await _give_up(job, "the worker was stopped", permanent=False)
            raise
        log.warning("%s: lost the lease of %s", job.agent_id, job.assignment.id)
    except GiveUp as reason:
        await _give_up(job, str(reason), permanent=reason.permanent)
    except Exception as error:  # noqa: BLE001 - whatever an agent's code raises is a failed attempt, never a dead worker
        await _give_up(job, f"{type(error).__name__}: {error}", permanent=False)
    else:
        await _hand_in(job, result)
    finally:
        working.cancel()
        beating.cancel()


async def _call(handler: Handler, job: Job) -> Any:
    """Call an async handler here, a plain one in a thread."""
    if asyncio.iscoroutinefunction(handler):
        return await handler(job)
    result = await asyncio.to_thread(handler, job)
    return await result if isinstance(result, Awaitable) else result


async def _beat(job: Job, working: asyncio.Task[Any]) -> None:
    """Keep the lease alive while the work goes on; a lost lease ends the work."""
    now = Timestamp()
    now.GetCurrentTime()
    left = (job.lease.expires_at.ToNanoseconds() - now.ToNanoseconds()) / 1e9
    pause = min(max(left / 3, MIN_BEAT_SECONDS), MAX_BEAT_SECONDS)
    while True:
        await asyncio.sleep(pause)
        with contextlib.suppress(CallFailed):
            answer = await job.client.agents.heartbeat(job.agent_id, [job.key])
            if job.assignment.id in answer.lost_assignment_ids:
                working.cancel()
                return


async def _hand_in(job: Job, result: Message) -> None:
    patient = job.client.on(patience_seconds=HAND_IN_PATIENCE_SECONDS)
    try:
        message = completion(job.key, job.assignment.purpose, result, job.usage)
    except TypeError as error:
        await _give_up(job, str(error), permanent=False)
        return
    try:
        outcome = await patient.agents.complete(job.agent_id, message)
    except CallFailed as failure:
        await _give_up(job, f"the result was refused: {failure}", permanent=False)
        return
    _tell(job, outcome, "handed in")


async def _give_up(job: Job, reason: str, *, permanent: bool) -> None:
    log.warning("%s: gives up %s: %s", job.agent_id, describe(job.assignment), reason)
    patient = job.client.on(patience_seconds=HAND_IN_PATIENCE_SECONDS)
    failure = pb.Failure(lease=job.key, error=reason[:MAX_ERROR] or "no reason", permanent=permanent, usage=job.usage)
    try:
        _tell(job, await patient.agents.fail(job.agent_id, failure), "given up")
    except CallFailed as error:
        log.warning("%s: %s could not be given up: %s", job.agent_id, job.assignment.id, error)


def _tell(job: Job, outcome: pb.CompletionOutcome, what: str) -> None:
    if outcome.accepted:
        log.info("%s: %s %s", job.agent_id, what, describe(job.assignment))
    else:
        reason = common.ErrorReason.Name(outcome.reason).removeprefix("ERROR_REASON_")
        log.warning("%s: %s was not taken (%s): %s", job.agent_id, job.assignment.id, reason, outcome.message)


def describe(assignment: assignments.Assignment) -> str:
    """An assignment in a few words."""
    purpose = assignments.Purpose.Name(assignment.purpose).removeprefix("PURPOSE_")
    where = "/".join(part for part in (assignment.run_id, assignment.task_id, assignment.stage) if part)
    return f"{purpose} {where} (attempt {assignment.attempt})"
