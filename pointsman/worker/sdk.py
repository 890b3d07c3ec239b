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

from pointsman._shared.otlp.span_record import now_ns
from pointsman._shared.redaction import redact
from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.client import CallFailed, Client, Unavailable, connect
from pointsman.worker.results import completion
from pointsman.worker.spans import DONE, GIVEN_UP, LOST, NOT_TAKEN, STOPPED, WorkSpans

MAX_ERROR = 4000
HAND_IN_PATIENCE_SECONDS = 600.0
GIVE_BACK_PATIENCE_SECONDS = 5.0
POLL_SECONDS = 20.0
POLL_PATIENCE_SECONDS, AWAY_SECONDS = 5.0, 2.0
"""How long a poll is tried again before the control plane counts as away, and how long until the next poll then."""
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
    role: str = ""
    traceparent: str = ""
    """The trace context to do the work in, for whatever the agent itself traces."""

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
        self._is_away = False
        self._spans = WorkSpans()

    def planner(self, handler: Handler) -> Handler:
        """Makes and patches plans (`Plan`), answers remarks (`FeedbackAnswers`)."""
        return self.add("planner", assignments.CAPABILITY_PLAN, handler)

    def critic(self, handler: Handler) -> Handler:
        """Judges plans (`ReviewDecision` with feedback)."""
        return self.add("critic", assignments.CAPABILITY_DEBATE, handler)

    def researcher(self, handler: Handler) -> Handler:
        """Finds things out (`ResearchReport`)."""
        return self.add("researcher", assignments.CAPABILITY_RESEARCH, handler)

    def surveyor(self, handler: Handler) -> Handler:
        """Describes a repository (`ResearchReport` with `is_survey`) where no researcher is there, or none is needed."""
        return self.add("surveyor", assignments.CAPABILITY_SURVEY, handler)

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
        async with self._spans.open(), asyncio.TaskGroup() as group:
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
                context = self._spans.context_of(lease)
                await self._do(Job(client, agent_id, lease, Usage(), role.name, context), role.handler)

    async def _do(self, job: Job, handler: Handler) -> None:
        begin_ns, outcome = now_ns(), STOPPED
        try:
            outcome = await _do(job, handler)
        finally:
            self._spans.note(job.lease, (job.agent_id, job.role), begin_ns, outcome, job.usage.tokens)

    async def _poll(self, client: Client, agent_id: str, wanted: pb.Wanted) -> Sequence[pb.Lease]:
        """Wait for work or for the stop; a control plane that is away is waited for."""
        waiting = client.on(patience_seconds=POLL_PATIENCE_SECONDS)
        polling = asyncio.create_task(waiting.agents.poll(agent_id, wanted, POLL_SECONDS))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((polling, stopping), return_when=asyncio.FIRST_COMPLETED)
            leases = await polling if polling.done() else ()
        except Unavailable as failure:
            self._note_reach(is_away=True, detail=str(failure))
            await asyncio.wait((stopping,), timeout=AWAY_SECONDS)
            return ()
        else:
            self._note_reach(is_away=self._is_away and not polling.done())
            return leases
        finally:
            polling.cancel()
            stopping.cancel()

    def _note_reach(self, *, is_away: bool, detail: str = "") -> None:
        """Say once that the control plane is away, and once that it is back, whatever the number of roles."""
        if is_away and not self._is_away:
            log.warning("%s: the control plane is away (%s); waiting for it", self.name, detail)
        elif self._is_away and not is_away:
            log.warning("%s: the control plane is back", self.name)
        self._is_away = is_away


async def _do(job: Job, handler: Handler) -> str:
    """Work on an assignment until it is out of the agent's hands; how it ended."""
    log.info("%s: takes %s", job.agent_id, describe(job.assignment))
    working = asyncio.create_task(_call(handler, job))
    beating = asyncio.create_task(_beat(job, working))
    try:
        result = await working
    except asyncio.CancelledError:
        if not beating.done():
            await _give_back(job)
            raise
        log.warning("%s: lost the lease of %s", job.agent_id, job.assignment.id)
        return LOST
    except GiveUp as reason:
        return await _give_up(job, str(reason), permanent=reason.permanent)
    except Exception as error:  # noqa: BLE001 - whatever an agent's code raises is a failed attempt, never a dead worker
        return await _give_up(job, f"{type(error).__name__}: {error}", permanent=False)
    else:
        return await _hand_in(job, result)
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


async def _hand_in(job: Job, result: Message) -> str:
    try:
        message = completion(job.key, job.assignment.purpose, result, job.usage)
    except TypeError as error:
        return await _give_up(job, str(error), permanent=False)
    try:
        outcome = await _patient(job).agents.complete(job.agent_id, message)
    except CallFailed as failure:
        return await _give_up(job, f"the result was refused: {failure}", permanent=False)
    _tell(job, outcome, "handed in")
    return DONE if outcome.accepted else NOT_TAKEN


async def _give_up(job: Job, reason: str, *, permanent: bool) -> str:
    log.warning("%s: gives up %s: %s", job.agent_id, describe(job.assignment), redact(reason))
    failure = pb.Failure(lease=job.key, error=reason[:MAX_ERROR] or "no reason", permanent=permanent, usage=job.usage)
    try:
        _tell(job, await _patient(job).agents.fail(job.agent_id, failure), "given up")
    except CallFailed as error:
        log.warning("%s: %s could not be given up: %s", job.agent_id, job.assignment.id, error)
    return GIVEN_UP


async def _give_back(job: Job) -> None:
    """The worker has to stop: somebody else begins anew, and no attempt is lost."""
    failure = pb.Failure(lease=job.key, error="the worker was stopped", returned=True)
    try:
        client = job.client.on(patience_seconds=GIVE_BACK_PATIENCE_SECONDS, traceparent=job.assignment.traceparent)
        _tell(job, await client.agents.fail(job.agent_id, failure), "given back")
    except CallFailed as error:
        log.warning("%s: %s could not be given back: %s", job.agent_id, job.assignment.id, error)


def _patient(job: Job) -> Client:
    """A client that does not give up soon, in the trace of what asked for the work."""
    return job.client.on(patience_seconds=HAND_IN_PATIENCE_SECONDS, traceparent=job.assignment.traceparent)


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
