"""Runs: submit, follow, answer, cancel, and fetch what was delivered."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from pointsman.api.common.v1.common_pb2 import TRANSITION_VIEW_DETAILS, Page, Transition
from pointsman.api.handoff.v1.delivery_pb2 import Delivery
from pointsman.api.handoff.v1.handoff_pb2 import AcceptanceCriterion
from pointsman.api.handoff.v1.work_pb2 import Plan
from pointsman.api.orchestrator.v1 import evidence_pb2 as evidence
from pointsman.api.orchestrator.v1 import machine_pb2 as table
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.api.orchestrator.v1.run_pb2 import (
    EXECUTION_MODE_QUALITY_GATE,
    AnswerKind,
    Attention,
    Budget,
    ExecutionMode,
    ProofTerms,
    Repository,
    Run,
    RunState,
    VerifyCommand,
)
from pointsman.client.calls import Calls, new_request_id


@dataclass(frozen=True, slots=True)
class Order:
    """What to do, and how; only the message is required."""

    message: str
    repository: Repository | None = None
    verify_commands: Sequence[Sequence[str]] = ()
    """Commands that prove the work, each as its argument list; each is a required criterion of its own."""
    criteria: Sequence[AcceptanceCriterion] = ()
    """Further acceptance criteria."""
    mode: ExecutionMode.ValueType = EXECUTION_MODE_QUALITY_GATE
    """When the work pauses for a person."""
    template: str = ""
    session_id: str = ""
    require_audit: bool = False
    budget: Budget | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    resume: pb.Resume.ValueType = pb.RESUME_NO
    as_action: bool = False
    """Start a run even if the router would only answer."""
    barrier_timeout_seconds: float = 0.0
    """How long barriers of its pipelines wait; 0 leaves it to the pipeline service."""
    proof_terms: ProofTerms | None = None
    """What the proof has to show besides the commands: fixed tests, held-out checks, a grade; whether tests may change."""
    lenient: bool = False
    """Go on past a judge that cannot be read and past stages without retries left; else a person is asked."""
    crew: pb.Crew | None = None
    """The workers that this run brings; None means any worker that polls."""
    review_plan: bool = False
    """A person looks at the plan before the work begins."""
    brings_plan: bool = False
    """The submitter answers that question with a plan; no planner is asked for the first one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's answer to an open question."""

    kind: AnswerKind.ValueType
    text: str = ""
    task_id: str = ""
    stage: str = ""
    confidence: float | None = None
    budget: Budget | None = None
    plan: Plan | None = None
    """Instead of the plan that is asked about."""


@dataclass(frozen=True, slots=True)
class Again:
    """How a run is done again; by default from its plan on, on its own terms."""

    wave: int = 0
    """From before this wave on, counted from 1; 0 says nothing about waves."""
    task_id: str = ""
    """From before the last wave of this task on."""
    text: str = ""
    """What is wanted besides."""
    crew: pb.Crew | None = None
    budget: Budget | None = None

    @property
    def point(self) -> pb.RerunPoint:
        """From where it goes on."""
        if self.wave:
            return pb.RerunPoint(wave=self.wave)
        return pb.RerunPoint(task_id=self.task_id) if self.task_id else pb.RerunPoint()


@dataclass(frozen=True, slots=True)
class RunsChange:
    """What is done to every selected run: one of these."""

    cancel: pb.CancelEach | None = None
    answer: pb.AnswerEach | None = None
    rerun: pb.RerunEach | None = None

    @property
    def name(self) -> str:
        """Which one it is."""
        return "cancel" if self.cancel is not None else "answer" if self.answer is not None else "rerun"


def submit_request(order: Order, request_id: str = "") -> pb.SubmitRequest:
    """An order as the control plane takes it."""
    request = pb.SubmitRequest(
        request_id=request_id,
        message=order.message,
        session_id=order.session_id,
        mode_override=pb.MODE_OVERRIDE_ACTION if order.as_action else pb.MODE_OVERRIDE_UNSPECIFIED,
        resume=order.resume,
        repository=order.repository,
        verify_commands=[VerifyCommand(arguments=command) for command in order.verify_commands],
        acceptance_criteria=order.criteria,
        execution_mode=order.mode,
        template=order.template,
        require_audit=order.require_audit,
        budget=order.budget,
        labels=order.labels,
        priority=order.priority,
        lenient=order.lenient,
        proof_terms=order.proof_terms,
        crew=order.crew,
        review_plan=order.review_plan,
        brings_plan=order.brings_plan,
    )
    if order.barrier_timeout_seconds:
        request.barrier_timeout.FromMicroseconds(round(order.barrier_timeout_seconds * 1_000_000))
    return request


class Runs:
    """OrchestratorService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = OrchestratorServiceStub(calls.channel)

    async def submit(self, order: Order, request_id: str = "") -> pb.SubmitResponse:
        """Start a run; the answer has no run when the router says that the message asks for none."""
        return await self._calls.mutate(self._stub.Submit, submit_request(order, request_id))

    async def get(self, run_id: str) -> Run:
        """A run as it is now."""
        return (await self._calls.call(self._stub.GetRun, pb.GetRunRequest(run_id=run_id))).run

    async def all(
        self,
        states: Sequence[RunState.ValueType] = (),
        labels: Mapping[str, str] | None = None,
        *,
        id_prefix: str = "",
        attention: Sequence[Attention.ValueType] = (),
        text: str = "",
    ) -> AsyncIterator[Run]:
        """Runs, newest first."""
        request = pb.ListRunsRequest(
            states=states, labels=labels or {}, id_prefix=id_prefix, attention=attention, text=text
        )
        async for page in self._calls.pages(self._stub.ListRuns, request):
            for run in page.runs:
                yield run

    async def selected(self, selection: pb.RunSelection) -> AsyncIterator[Run]:
        """The runs of a selection, newest first."""
        request = pb.ListRunsRequest(
            states=selection.states,
            labels=selection.labels,
            text=selection.text,
            attention=selection.attention,
            session_id=selection.session_id,
        )
        for name in ("created_before", "created_after"):
            if selection.HasField(name):
                getattr(request, name).CopyFrom(getattr(selection, name))
        async for page in self._calls.pages(self._stub.ListRuns, request):
            for run in page.runs:
                yield run

    async def counts(self) -> pb.CountRunsResponse:
        """Counts of runs by what they need from people."""
        return await self._calls.call(self._stub.CountRuns, pb.CountRunsRequest())

    async def projects(self) -> AsyncIterator[pb.ProjectSummary]:
        """The projects that the caller has a part in, by name, with counts of their runs."""
        async for page in self._calls.pages(self._stub.ListProjects, pb.ListProjectsRequest()):
            for project in page.projects:
                yield project

    async def label(self, run_id: str, labels: Mapping[str, str], request_id: str = "") -> Run:
        """Set labels of a run; an empty value takes one away."""
        request = pb.LabelRunRequest(request_id=request_id, run_id=run_id, labels=labels)
        return (await self._calls.mutate(self._stub.LabelRun, request)).run

    async def page(self, size: int, page_token: str = "") -> pb.ListRunsResponse:
        """One page of the runs, newest first."""
        page = Page(page_size=size, page_token=page_token)
        return await self._calls.call(self._stub.ListRuns, pb.ListRunsRequest(page=page))

    async def change(self, run_id: str, message: str, request_id: str = "") -> Run:
        """Changes the requirement."""
        request = pb.ChangeRequirementRequest(request_id=request_id, run_id=run_id, message=message)
        return (await self._calls.mutate(self._stub.ChangeRequirement, request)).run

    async def answer(self, run_id: str, question_id: str, reply: Reply, request_id: str = "") -> Run:
        """Answer the open question."""
        request = pb.AnswerRequest(
            request_id=request_id,
            run_id=run_id,
            question_id=question_id,
            answer=reply.kind,
            text=reply.text,
            task_id=reply.task_id,
            stage=reply.stage,
            confidence=reply.confidence,
            budget=reply.budget,
            plan=reply.plan,
        )
        return (await self._calls.mutate(self._stub.Answer, request)).run

    async def cancel(self, run_id: str, reason: str = "", request_id: str = "") -> Run:
        """End a run on purpose."""
        request = pb.CancelRunRequest(request_id=request_id, run_id=run_id, reason=reason)
        return (await self._calls.mutate(self._stub.CancelRun, request)).run

    async def rerun(self, run_id: str, again: Again, request_id: str = "") -> Run:
        """Start a run that does again what an ended one did, from a point of it."""
        request = pb.RerunRequest(
            request_id=request_id,
            run_id=run_id,
            point=again.point,
            text=again.text,
            crew=again.crew,
            budget=again.budget,
        )
        return (await self._calls.mutate(self._stub.Rerun, request)).run

    async def change_all(
        self, selection: pb.RunSelection, change: RunsChange, *, dry_run: bool = False, request_id: str = ""
    ) -> AsyncIterator[pb.ChangedRun]:
        """Do the same to every selected run; begun anew with the same request_id, nothing is done twice."""
        request = pb.ChangeRunsRequest(
            request_id=request_id or new_request_id(),
            selection=selection,
            cancel=change.cancel,
            answer=change.answer,
            rerun=change.rerun,
            dry_run=dry_run,
        )
        while True:
            page = await self._calls.mutate(self._stub.ChangeRuns, request)
            for one in page.runs:
                yield one
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def watch(self, run_id: str, after_seq: int = 0) -> AsyncIterator[Transition]:
        """A run's transitions to its end, each once, in order, over lost connections and restarts."""
        request = pb.WatchRunRequest(run_id=run_id, after_seq=after_seq)
        return self._calls.watch_entity(self._stub.WatchRun, request)

    def changes(self, after_position: int = 0) -> AsyncIterator[Transition]:
        """The transitions of all runs of the project in commit order; it does not end."""
        request = pb.WatchChangesRequest(after_position=after_position)
        return self._calls.watch_store(self._stub.WatchChanges, request)

    async def transitions(self, run_id: str) -> AsyncIterator[Transition]:
        """A run's journal so far."""
        request = pb.ListTransitionsRequest(run_id=run_id)
        async for page in self._calls.pages(self._stub.ListTransitions, request):
            for transition in page.transitions:
                yield transition

    async def details(self, run_id: str) -> AsyncIterator[Transition]:
        """A run's journal so far, with the documents that agents handed in."""
        request = pb.ListTransitionsRequest(run_id=run_id, view=TRANSITION_VIEW_DETAILS)
        async for page in self._calls.pages(self._stub.ListTransitions, request):
            for transition in page.transitions:
                yield transition

    async def delivery(self, run_id: str) -> Delivery:
        """What a run delivered, or what is accepted so far."""
        request = pb.GetDeliveryRequest(run_id=run_id)
        return (await self._calls.call(self._stub.GetDelivery, request)).delivery

    async def evidence(self, run_id: str, task_id: str = "") -> AsyncIterator[evidence.Attempt]:
        """The attempts at a run's tasks, oldest first: claims with their evidence, findings, judgements, setbacks."""
        request = evidence.GetEvidenceRequest(run_id=run_id, task_id=task_id)
        async for page in self._calls.pages(self._stub.GetEvidence, request):
            for attempt in page.attempts:
                yield attempt

    async def machine(self) -> table.GetMachineResponse:
        """The table of transitions."""
        return await self._calls.call(self._stub.GetMachine, table.GetMachineRequest())
