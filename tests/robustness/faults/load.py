"""The work that goes on while everything breaks: runs with persons and agents, plans, pipelines, decisions."""

import asyncio
import random  # noqa: TID251 - a campaign is repeated from its seed
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as runs_pb
from pointsman.api.orchestrator.v1 import run_pb2
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.api.pipeline.v1 import pipeline_pb2 as pipeline_pb
from pointsman.api.pipeline.v1 import route_pb2
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.router.v1 import decision_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import model_pb2, plans_pb2, tasks_pb2
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.services.mock_agents.agents import MockAgents
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockPolicy, MockRole
from tests.helpers.limits import scaled, within
from tests.robustness.faults.cluster import LEASE_SECONDS
from tests.robustness.faults.memory import Caller, Memory, watch

ENDS = frozenset({"COMPLETE", "CANCELLED", "FAILED"})
TERMINAL = frozenset({run_pb2.RUN_STATE_COMPLETE, run_pb2.RUN_STATE_CANCELLED, run_pb2.RUN_STATE_FAILED})
LABEL = "asked-as"
WISHES = (
    "Fix the failing test in src/parser.py and add a regression test",
    "Add a greeting to src/hello.py and test it",
    "Refactor the storage module in src/storage.py into two files",
    "Write the missing tests of src/dates.py",
)
MAX_ANSWERS = 6
LOOK_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
"""Longer than the longest jump of a clock after which a lease is still waited for."""
PLAN_TASKS = 24
PLAN_WORKERS = 3
TEMPLATES = ("standard", "quick-dev", "full", "test-first", "fix")
AUTO = pipeline_pb.AutoDelegate(agent_id="agent")
LONGEST_PIPELINE = 60
HURRIED, WALL_CLOCK_SECONDS = 0.15, 2
"""Some runs have so little time that a timer has to stop them."""
LATE, BARRIER_SECONDS = 0.05, 1
"""Some stages answer when their barrier waits no longer."""


class Work:
    """Everything that is going on; `stopping` lets what is begun come to its end and begins nothing new."""

    def __init__(self, channels: dict[str, grpc.aio.Channel], memory: Memory, seed: int) -> None:
        self._channels = channels
        self.memory = memory
        self._chance = random.Random(seed)
        self.stopping = asyncio.Event()
        self.impatient = asyncio.Event()
        """From then on, a run that has not ended is cancelled: its timer may be set to a time of a clock that was ahead."""
        self.stuck: list[str] = []
        """Those runs, and what they were waiting for."""
        self.policies: list[MockPolicy] = []
        self._followers: list[asyncio.Task[Any]] = []
        self._workers: list[asyncio.Task[Any]] = []
        self._news: dict[str, asyncio.Event] = {}
        self._ended: dict[str, str] = {}
        self.runs: dict[str, str] = {}
        """The run that each Submit was answered with."""

    @property
    def live(self) -> int:
        """How many runs have not been seen to end."""
        return len(set(self.runs.values()) - set(self._ended))

    def caller(self, context: str, project: str) -> Caller:
        """A client of one service in one project."""
        return Caller(context, project, self._channels[context], self.memory)

    def begin(self, projects: Sequence[str], runs_each: int, direct: int) -> None:
        """Agents, watchers and as many callers as asked for."""
        for project in projects:
            self._follow(self._team(project))
            for context in ("orchestrator", "pipeline", "workflow"):
                self._follow([watch(self.caller(context, project), self._notice)])
            for number in range(runs_each):
                self._work(self._again(self._one_run, project, f"{project}-{number}"))
        for context in ("pipeline", "workflow"):
            self._follow([watch(self.caller(context, "direct"))])
        for number in range(direct):
            self._work(self._again(self._one_plan, "direct", f"plan-{number}"))
            self._work(self._again(self._one_pipeline, "direct", f"pipe-{number}"))
            self._work(self._again(self._one_decision, "direct", f"text-{number}"))

    def _follow(self, work: Sequence[Awaitable[None]]) -> None:
        self._followers += [asyncio.ensure_future(each) for each in work]

    def _work(self, work: Awaitable[None]) -> None:
        self._workers.append(asyncio.ensure_future(work))

    async def finish(self, seconds: float) -> None:
        """From now on every agent does well; whatever was begun comes to its end."""
        self.stopping.set()
        asyncio.get_running_loop().call_later(scaled(PATIENCE_SECONDS), self.impatient.set)
        for policy in self.policies:
            policy.set(tuple(MockRole), MockOutcome.SUCCESS)
        async with within(seconds):
            await asyncio.gather(*self._workers)

    async def close(self) -> None:
        """Nobody watches any more."""
        for task in (*self._workers, *self._followers):
            task.cancel()
        await asyncio.gather(*self._workers, *self._followers, return_exceptions=True)

    def _team(self, project: str) -> list[Awaitable[None]]:
        policy = MockPolicy(dict.fromkeys(MockRole, MockOutcome.SUCCESS), frozenset(MockRole))
        self.policies.append(policy)
        agents = MockAgents(
            lambda _: self._channels["orchestrator"], policy, slow_seconds=LEASE_SECONDS * 1.5, project=project
        )
        return [loop() for _, loop in agents.loops]

    def change_tempers(self) -> None:
        """Some agents behave otherwise from now on, most of them well."""
        outcomes = (*MockOutcome, *([MockOutcome.SUCCESS] * len(MockOutcome)))
        for policy in self.policies:
            for role in MockRole:
                policy.set((role,), self._chance.choice(outcomes))

    async def _again(self, one: Callable[[str, str], Awaitable[None]], project: str, name: str) -> None:
        turn = 0
        while not self.stopping.is_set():
            turn += 1
            await one(project, f"{name}-{turn}")

    async def _notice(self, transition: Transition) -> None:
        if transition.kind == "run":
            if transition.to_state in ENDS:
                self._ended[transition.entity_id] = transition.to_state
            self._news.setdefault(transition.entity_id, asyncio.Event()).set()

    async def _one_run(self, project: str, name: str) -> None:
        """Submit, answer what is asked, and see it end; one that asks too often is cancelled."""
        caller = self.caller("orchestrator", project)
        stub: Any = OrchestratorServiceStub(caller.channel)
        wish = self._chance.choice(WISHES)
        request = runs_pb.SubmitRequest(
            request_id=name, message=wish, mode_override=runs_pb.MODE_OVERRIDE_ACTION, resume=runs_pb.RESUME_NO,
            labels={LABEL: name},
        )  # fmt: skip
        if self._chance.random() < HURRIED:
            request.budget.wall_clock.seconds = WALL_CLOCK_SECONDS
        answer = await caller.ask(stub.Submit, request)
        if answer is None:
            return
        run_id = answer.run.id
        self.runs[name] = run_id
        answers = 0
        while run_id not in self._ended:
            await self._news_of(run_id)
            run = await caller.ask(stub.GetRun, runs_pb.GetRunRequest(run_id=run_id))
            if run is None or run.run.state in TERMINAL:
                return
            if run.run.HasField("question") or self.impatient.is_set():
                answers += 1
                give_up = answers > MAX_ANSWERS or self.impatient.is_set()
                if self.impatient.is_set():
                    self.stuck.append(f"{run_id} {run_pb2.RunState.Name(run.run.state)}: {run.run.waiting_for}")
                await self._reply(caller, stub, run.run, f"{name}-answer-{answers}", give_up=give_up)

    async def _news_of(self, run_id: str) -> None:
        news = self._news.setdefault(run_id, asyncio.Event())
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await news.wait()
        except TimeoutError:
            return
        news.clear()

    async def _reply(self, caller: Caller, stub: Any, run: Any, request_id: str, *, give_up: bool) -> None:
        if give_up or self._chance.random() < 0.05:
            await caller.ask(stub.CancelRun, runs_pb.CancelRunRequest(request_id=request_id, run_id=run.id))
            return
        reply = runs_pb.AnswerRequest(
            request_id=request_id, run_id=run.id, question_id=run.question.id, text="go on as you think best",
            answer=self._chance.choice(list(run.question.takes)), confidence=0.9,
        )  # fmt: skip
        if reply.answer == run_pb2.ANSWER_KIND_RAISE:
            reply.budget.assignments = 1000
            reply.budget.wall_clock.seconds = 86_400
        await caller.ask(stub.Answer, reply)

    async def _one_plan(self, project: str, name: str) -> None:
        """A plan with dependencies, worked off by several workers at once."""
        caller = self.caller("workflow", project)
        stub: Any = WorkflowServiceStub(caller.channel)
        tasks = [
            model_pb2.TaskSpec(task_id=f"T{number}", name="work", depends=[f"T{number - 4}"] if number >= 4 else [])
            for number in range(PLAN_TASKS)
        ]
        await caller.ask(stub.UpsertPlan, plans_pb2.UpsertPlanRequest(request_id=name, workflow_id=name, tasks=tasks))
        settings = plans_pb2.ExecutionSettings(
            execution_mode=model_pb2.EXECUTION_MODE_QUALITY_GATE, use_subagent=True, pause_before_commit=False
        )
        await caller.ask(
            stub.Execute, plans_pb2.ExecuteRequest(request_id=f"{name}-go", workflow_id=name, settings=settings)
        )
        await asyncio.gather(*(self._hand(caller, stub, name, f"{name}-w{n}") for n in range(PLAN_WORKERS)))

    async def _hand(self, caller: Caller, stub: Any, workflow_id: str, worker: str) -> None:
        for turn in range(4 * PLAN_TASKS):
            claim = tasks_pb2.NextTasksRequest(request_id=f"{worker}-{turn}", workflow_id=workflow_id, worker=worker)
            answer = await caller.ask(stub.NextTasks, claim)
            if answer is None or answer.progress.status != model_pb2.WORKFLOW_STATUS_RUNNING:
                return
            for task in answer.tasks:
                done = tasks_pb2.CompleteTaskRequest(
                    request_id=f"{worker}-{turn}-{task.spec.task_id}", workflow_id=workflow_id,
                    task_id=task.spec.task_id, attempt=task.attempt,
                )  # fmt: skip
                await caller.ask(stub.CompleteTask, done)
            if not answer.tasks:
                await asyncio.sleep(0.05)

    async def _one_pipeline(self, project: str, name: str) -> None:
        """A pipeline whose stages fail now and then."""
        caller = self.caller("pipeline", project)
        stub: Any = PipelineServiceStub(caller.channel)
        request = pipeline_pb.StartPipelineRequest(
            request_id=name, pipeline_id=name, template=self._chance.choice(TEMPLATES), auto_delegate=AUTO,
            barrier_timeout=Duration(seconds=BARRIER_SECONDS),
        )  # fmt: skip
        answer = await caller.ask(stub.StartPipeline, request)
        waiting = list(answer.next) if answer else []
        for turn in range(LONGEST_PIPELINE):
            if not waiting:
                return
            answers = await asyncio.gather(*(self._stage(caller, stub, name, turn, item) for item in waiting))
            waiting = [item for answer in answers if answer is not None for item in answer.next]

    async def _stage(self, caller: Caller, stub: Any, name: str, turn: int, item: Any) -> Any:
        if self._chance.random() < LATE:
            await asyncio.sleep(BARRIER_SECONDS * 1.5)
        failed = self._chance.random() < 0.15
        route = route_pb2.Route(
            verdict=route_pb2.VERDICT_FAIL if failed else route_pb2.VERDICT_PASS,
            severity=route_pb2.SEVERITY_MEDIUM if failed else route_pb2.SEVERITY_UNSPECIFIED,
        )
        request = pipeline_pb.CompleteStageRequest(
            request_id=f"{name}-{turn}-{item.delegation_id}", pipeline_id=name, delegation_id=item.delegation_id,
            agent_id="agent", route=route, auto_delegate=AUTO,
        )  # fmt: skip
        return await caller.ask(stub.CompleteStage, request)

    async def _one_decision(self, project: str, name: str) -> None:
        """One message, routed."""
        caller = self.caller("router", project)
        stub: Any = RouterServiceStub(caller.channel)
        message = decision_pb2.Message(text=f"{self._chance.choice(WISHES)} ({name})")
        await caller.ask(stub.Classify, decision_pb2.ClassifyRequest(request_id=name, message=message))
        await asyncio.sleep(0.02)
