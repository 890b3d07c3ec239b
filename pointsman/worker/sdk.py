"""The worker: polls for assignments of its roles, keeps their leases alive, hands results in, and stops on request."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman._shared.excerpt import excerpt
from pointsman._shared.otlp.span_record import now_ns
from pointsman._shared.redaction import redact
from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1.handoff_pb2 import ArtifactRef
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.client import CallFailed, Client, Unavailable, connect
from pointsman.usage.output import ToolCall
from pointsman.worker.offers import Reach
from pointsman.worker.results import completion
from pointsman.worker.roles import CREDENTIAL_ROLES, NOT_BILLED, Billing, describe
from pointsman.worker.spans import DONE, GIVEN_UP, LOST, NOT_TAKEN, STOPPED, WorkSpans
from pointsman.worker.transcript import Transcript

MAX_ERROR = 4000
HAND_IN_PATIENCE_SECONDS, RETURN_PATIENCE_SECONDS = 600.0, 5.0
POLL_SECONDS = 20.0
POLL_PATIENCE_SECONDS, AWAY_SECONDS = 5.0, 2.0
"""How long a poll is retried before the control plane counts as unreachable, and the pause before the next poll."""
MIN_HEARTBEAT_SECONDS, MAX_HEARTBEAT_SECONDS = 0.5, 20.0
OUTPUT_SECONDS = 1.0
"""How often what an agent prints is sent at the most."""
TRANSCRIPT_TYPE = "text/plain"

log = logging.getLogger("pointsman.worker")

Handler = Callable[["Job"], Any]


class GiveUp(Exception):
    """Raised by a handler that cannot do its assignment; permanent when no agent can."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


class LimitReached(GiveUp):
    """The model's provider refuses because of a limit: the assignment goes back uncounted, and the account rests."""

    def __init__(self, reason: str, limit: pb.ProviderLimit) -> None:
        super().__init__(reason)
        self.limit = limit


@dataclass(slots=True)
class Job:
    """One leased assignment; `work` is the request of the lease's purpose."""

    client: Client
    agent_id: str
    lease: pb.Lease
    usage: Usage
    role: str = ""
    traceparent: str = ""
    """The trace context for spans of the agent itself."""
    transcript: Transcript = field(default_factory=Transcript)
    """What the agent prints; people can watch it, and it is stored with the assignment."""
    attributes: dict[str, str | int] = field(default_factory=dict)
    """What the handler adds to the span of the work; undeclared names are dropped."""
    tool_calls: list[ToolCall] = field(default_factory=list)

    @property
    def assignment(self) -> assignments.Assignment:
        """The assignment."""
        return self.lease.assignment

    @property
    def work(self) -> Any:
        """The request of the lease."""
        return getattr(self.lease, str(self.lease.WhichOneof("work")))

    @property
    def key(self) -> pb.LeaseKey:
        """The key of the lease."""
        return pb.LeaseKey(assignment_id=self.assignment.id, epoch=self.lease.epoch, secret=self.lease.secret)


@dataclass(frozen=True, slots=True)
class Role:
    """One capability of the worker; each agent of it has an id of its own."""

    name: str
    capability: assignments.Capability.ValueType
    handler: Handler
    count: int
    """How many agents of it work at the same time."""
    billing: Billing = NOT_BILLED


class Worker:
    """An agent with one or more roles; each role is a function from a job to its result."""

    def __init__(
        self, name: str, repository_ids: Sequence[str] = (), capacity: int = 1, run_ids: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.reach = Reach(tuple(repository_ids), tuple(run_ids))
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
        """Answers research questions (`ResearchReport`)."""
        return self.add("researcher", assignments.CAPABILITY_RESEARCH, handler)

    def surveyor(self, handler: Handler) -> Handler:
        """Surveys a repository (`ResearchReport` with `is_survey`) where there is no researcher, or none is needed."""
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
        """Merges a wave and runs its criteria and evidence (`VerificationReport`)."""
        return self.add("verifier", assignments.CAPABILITY_VERIFY, handler)

    def add(self, name: str, capability: assignments.Capability.ValueType, handler: Handler, count: int = 0) -> Handler:
        """Adds a role, played by as many agents as are given, else by the worker's capacity."""
        return self.add_role(Role(name, capability, handler, count or self._capacity))

    def add_role(self, role: Role) -> Handler:
        """Adds a role that is billed to an account."""
        self._roles.append(role)
        return role.handler

    @property
    def agent_ids(self) -> tuple[str, ...]:
        """The ids under which it polls."""
        return tuple(agent_id for role in self._roles for agent_id in self._ids(role))

    def _ids(self, role: Role) -> list[str]:
        """The ids of its agents: `box-coder`, `box-coder-2` and so on."""
        first = f"{self.name}-{role.name}"
        return [first, *(f"{first}-{number}" for number in range(2, role.count + 1))]

    def stop(self) -> None:
        """Stops polling; leased assignments are still finished and handed in."""
        self._stopping.set()

    async def serve(self, client: Client) -> None:
        """Work until stopped."""
        async with self._spans.open(), asyncio.TaskGroup() as group:
            for role in self._roles:
                for agent_id in self._ids(role):
                    group.create_task(self._serve_role(client, role, agent_id))

    def main(self, address: str = "") -> None:
        """Work until SIGINT or SIGTERM; the second one ends at once.

        Without an address it works for POINTSMAN_SERVER, or for the control plane of the data directory.
        """

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

    async def _serve_role(self, client: Client, role: Role, agent_id: str) -> None:
        async with client.acting_as(CREDENTIAL_ROLES[role.capability], agent_id) as own:
            await self._take_assignments(own, role, agent_id)

    async def _take_assignments(self, client: Client, role: Role, agent_id: str) -> None:
        while not self._stopping.is_set():
            wanted = await self.reach.wanted(role.capability, role.billing)
            for lease in await self._poll(client, agent_id, wanted):
                context = self._spans.context_of(lease)
                await self._do(Job(client, agent_id, lease, Usage(), role.name, context), role.handler)

    async def _do(self, job: Job, handler: Handler) -> None:
        begin_ns, outcome = now_ns(), STOPPED
        try:
            outcome = await _do(job, handler)
        finally:
            attributes: dict[str, str | int] = {"pointsman.assignment.tokens": job.usage.tokens, **job.attributes}
            self._spans.record(job.lease, (job.agent_id, job.role), begin_ns, outcome, attributes)
            self._spans.record_tools(job.lease, job.tool_calls)

    async def _poll(self, client: Client, agent_id: str, wanted: pb.Wanted) -> Sequence[pb.Lease]:
        """Waits for leases or for the stop; an unreachable control plane is polled again later."""
        waiting = client.on(patience_seconds=POLL_PATIENCE_SECONDS)
        polling = asyncio.create_task(waiting.agents.poll(agent_id, wanted, POLL_SECONDS))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((polling, stopping), return_when=asyncio.FIRST_COMPLETED)
            leases = await polling if polling.done() else ()
        except Unavailable as failure:
            self._log_reachability(is_away=True, detail=str(failure))
            await asyncio.wait((stopping,), timeout=AWAY_SECONDS)
            return ()
        else:
            self._log_reachability(is_away=self._is_away and not polling.done())
            return leases
        finally:
            polling.cancel()
            stopping.cancel()

    def _log_reachability(self, *, is_away: bool, detail: str = "") -> None:
        """Logs once that the control plane is unreachable, and once that it is back, for all roles together."""
        if is_away and not self._is_away:
            log.warning("%s: the control plane is away (%s); waiting for it", self.name, detail)
        elif self._is_away and not is_away:
            log.warning("%s: the control plane is back", self.name)
        self._is_away = is_away


async def _do(job: Job, handler: Handler) -> str:
    """Works on an assignment until it is completed, failed or lost; returns which."""
    log.info("%s: takes %s", job.agent_id, describe(job.assignment))
    working = asyncio.create_task(_call(handler, job))
    heartbeats = asyncio.create_task(_heartbeat(job, working))
    try:
        result = await working
    except asyncio.CancelledError:
        if not heartbeats.done():
            await _return_assignment(job)
            raise
        log.warning("%s: lost the lease of %s", job.agent_id, job.assignment.id)
        return LOST
    except LimitReached as reached:
        await _keep_transcript(job)
        await _return_assignment(job, str(reached), reached.limit)
        return GIVEN_UP
    except GiveUp as reason:
        await _keep_transcript(job)
        return await _give_up(job, str(reason), permanent=reason.permanent)
    except Exception as error:  # noqa: BLE001 - whatever an agent's code raises is a failed attempt, never a dead worker
        await _keep_transcript(job)
        return await _give_up(job, f"{type(error).__name__}: {error}", permanent=False)
    else:
        await _keep_transcript(job)
        return await _hand_in(job, result)
    finally:
        working.cancel()
        heartbeats.cancel()


async def _call(handler: Handler, job: Job) -> Any:
    """Calls an async handler in this loop, any other in a thread."""
    if asyncio.iscoroutinefunction(handler):
        return await handler(job)
    result = await asyncio.to_thread(handler, job)
    return await result if isinstance(result, Awaitable) else result


async def _heartbeat(job: Job, working: asyncio.Task[Any]) -> None:
    """Extends the lease while the handler runs; a lost lease cancels the handler."""
    now = Timestamp()
    now.GetCurrentTime()
    left = (job.lease.expires_at.ToNanoseconds() - now.ToNanoseconds()) / 1e9
    pause = min(max(left / 3, MIN_HEARTBEAT_SECONDS), MAX_HEARTBEAT_SECONDS)
    clock = asyncio.get_running_loop().time
    due_at = clock() + pause
    while True:
        await asyncio.sleep(min(OUTPUT_SECONDS, max(0.0, due_at - clock())))
        if clock() < due_at and not job.transcript.has_unsent:
            continue
        due_at = clock() + pause
        with contextlib.suppress(CallFailed):
            answer = await _send_output(job)
            if job.assignment.id in answer.lost_assignment_ids:
                working.cancel()
                return


async def _send_output(job: Job, transcript: ArtifactRef | None = None) -> pb.HeartbeatResponse:
    """A heartbeat with what was printed since the one before."""
    async with job.transcript.sending:
        tails = [
            pb.OutputTail(assignment_id=job.assignment.id, offset=offset, text=text)
            for offset, text in job.transcript.take()
        ]
        if transcript is not None:
            tails.append(pb.OutputTail(assignment_id=job.assignment.id, transcript=transcript))
        return await job.client.agents.heartbeat(job.agent_id, [job.key], tails)


async def _keep_transcript(job: Job) -> None:
    """Stores the whole output with the assignment; without it the work counts all the same."""
    job.transcript.close()
    body = job.transcript.body()
    if not body:
        return
    try:
        stored = await job.client.artifacts.put(body, TRANSCRIPT_TYPE, job.assignment.run_id)
        await _send_output(job, stored)
    except CallFailed as failure:
        log.warning("%s: the transcript of %s was not stored: %s", job.agent_id, job.assignment.id, failure)


async def _hand_in(job: Job, result: Message) -> str:
    try:
        message = completion(job.key, job.assignment.purpose, result, job.usage)
    except TypeError as error:
        return await _give_up(job, str(error), permanent=False)
    try:
        outcome = await _patient_client(job).agents.complete(job.agent_id, message)
    except CallFailed as failure:
        return await _give_up(job, f"the result was refused: {failure}", permanent=False)
    _log_outcome(job, outcome, "handed in")
    return DONE if outcome.accepted else NOT_TAKEN


async def _give_up(job: Job, reason: str, *, permanent: bool) -> str:
    log.warning("%s: gives up %s: %s", job.agent_id, describe(job.assignment), redact(reason))
    failure = pb.Failure(
        lease=job.key, error=excerpt(reason, MAX_ERROR) or "no reason", permanent=permanent, usage=job.usage
    )
    try:
        _log_outcome(job, await _patient_client(job).agents.fail(job.agent_id, failure), "given up")
    except CallFailed as error:
        log.warning("%s: %s could not be given up: %s", job.agent_id, job.assignment.id, error)
    return GIVEN_UP


async def _return_assignment(
    job: Job, reason: str = "the worker was stopped", limit: pb.ProviderLimit | None = None
) -> None:
    """Returns the assignment because the worker stops or may not go on; it does not count as an attempt."""
    failure = pb.Failure(lease=job.key, error=excerpt(reason, MAX_ERROR), returned=True, limit=limit)
    try:
        client = job.client.on(patience_seconds=RETURN_PATIENCE_SECONDS, traceparent=job.assignment.traceparent)
        _log_outcome(job, await client.agents.fail(job.agent_id, failure), "given back")
    except CallFailed as error:
        log.warning("%s: %s could not be given back: %s", job.agent_id, job.assignment.id, error)


def _patient_client(job: Job) -> Client:
    """A client with long patience, in the trace of the assignment."""
    return job.client.on(patience_seconds=HAND_IN_PATIENCE_SECONDS, traceparent=job.assignment.traceparent)


def _log_outcome(job: Job, outcome: pb.CompletionOutcome, what: str) -> None:
    if outcome.accepted:
        log.info("%s: %s %s", job.agent_id, what, describe(job.assignment))
    else:
        reason = common.ErrorReason.Name(outcome.reason).removeprefix("ERROR_REASON_")
        log.warning("%s: %s was not taken (%s): %s", job.agent_id, job.assignment.id, reason, outcome.message)
