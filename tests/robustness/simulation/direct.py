"""Who uses workflow, pipeline and router without a run: short lives with barriers, retries and rivals of their own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from google.protobuf.duration_pb2 import Duration

from pointsman.api.pipeline.v1 import pipeline_pb2 as pipeline_pb
from pointsman.api.pipeline.v1 import requests_pb2, route_pb2
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.router.v1 import decision_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import model_pb2, plans_pb2, tasks_pb2
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from tests.robustness.simulation.told import Told
from tests.robustness.simulation.world import Chance

TEMPLATES = ("standard", "quick-dev", "test-first", "fix")
AUTO = pipeline_pb.AutoDelegate(agent_id="agent")
BARRIER_SECONDS = (5, 20, 60)
MOST_STAGES = 30
MANY_TRIES = 60
GOES = plans_pb2.ExecutionSettings(
    execution_mode=model_pb2.EXECUTION_MODE_QUALITY_GATE, use_subagent=True, pause_before_commit=False
)


class Asking(Protocol):
    """How everybody asks: with a key, and again until there is an answer."""

    told: Told

    def new_key(self) -> str:
        """A new idempotency key."""

    async def insist(self, method: Any, request: Any, tries: int = 6) -> Any:
        """The answer; None when it was refused or never came."""


class Direct:
    """Callers of the three services; `all` is what one seed has of them."""

    def __init__(self, asking: Asking, wire: Callable[[str], Any], chance: Chance) -> None:
        self._asking = asking
        self._draw = chance.random
        self._workflow: Any = WorkflowServiceStub(wire("workflow"))
        self._pipeline: Any = PipelineServiceStub(wire("pipeline"))
        self._router: Any = RouterServiceStub(wire("router"))

    @property
    def all(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """What happens, side by side."""
        some = self._draw.choice(((self.plan,), (self.pipeline,), (self.plan, self.pipeline)))
        return (*some, self.decision)

    async def _ask(self, context: str, method: Any, request: Any, tries: int = 20) -> Any:
        """Ask, and hold the service to its answer."""
        answer = await self._asking.insist(method, request, tries)
        if answer is not None:
            self._asking.told.kept.append((context, request.request_id))
        return answer

    async def decision(self) -> None:
        """One message, routed."""
        message = decision_pb2.Message(text="Fix the failing test in src/parser.py")
        request = decision_pb2.ClassifyRequest(request_id=self._asking.new_key(), message=message)
        await self._ask("router", self._router.Classify, request)

    async def plan(self) -> None:
        """A plan with dependencies, worked off by rivals."""
        count = self._draw.choice((2, 3, 5))
        tasks = [
            model_pb2.TaskSpec(task_id=f"T{n}", name="work", depends=[f"T{n - 2}"] if n >= 2 else [])
            for n in range(count)
        ]
        made = plans_pb2.UpsertPlanRequest(request_id=self._asking.new_key(), workflow_id="plan", tasks=tasks)
        if await self._ask("workflow", self._workflow.UpsertPlan, made, MANY_TRIES) is None:
            return
        go = plans_pb2.ExecuteRequest(request_id=self._asking.new_key(), workflow_id="plan", settings=GOES)
        await self._ask("workflow", self._workflow.Execute, go, MANY_TRIES)
        await asyncio.gather(*(self._hand(f"worker-{n}") for n in range(self._draw.choice((1, 2)))))

    async def _hand(self, worker: str) -> None:
        while True:
            claim = tasks_pb2.NextTasksRequest(
                request_id=self._asking.new_key(), workflow_id="plan", worker=worker, limit=self._draw.choice((1, 2))
            )
            answer = await self._ask("workflow", self._workflow.NextTasks, claim, MANY_TRIES)
            if answer is None or answer.progress.status != model_pb2.WORKFLOW_STATUS_RUNNING:
                return
            for task in answer.tasks:
                await self._work(task)
            await asyncio.sleep(self._draw.random() * 3)

    async def _work(self, task: Any) -> None:
        """Do a task; some fail once, and are tried again."""
        name, attempt = task.spec.task_id, task.attempt
        self._asking.told.claimed.append((name, attempt))
        key = {"request_id": self._asking.new_key(), "workflow_id": "plan", "task_id": name}
        if attempt == 1 and self._draw.random() < 0.2:
            failed = tasks_pb2.FailTaskRequest(**key, attempt=attempt, reason="cannot")
            if await self._ask("workflow", self._workflow.FailTask, failed, MANY_TRIES) is not None:
                again = tasks_pb2.RetryTaskRequest(**{**key, "request_id": self._asking.new_key()})
                await self._ask("workflow", self._workflow.RetryTask, again, MANY_TRIES)
            return
        done = tasks_pb2.CompleteTaskRequest(**key, attempt=attempt)
        await self._ask("workflow", self._workflow.CompleteTask, done, MANY_TRIES)

    async def pipeline(self) -> None:
        """A pipeline whose stages fail, are late, or never come; what does not end by itself is ended."""
        request = pipeline_pb.StartPipelineRequest(
            request_id=self._asking.new_key(), pipeline_id="pipe", template=self._draw.choice(TEMPLATES),
            auto_delegate=AUTO, barrier_timeout=Duration(seconds=self._draw.choice(BARRIER_SECONDS)),
        )  # fmt: skip
        answer = await self._ask("pipeline", self._pipeline.StartPipeline, request, MANY_TRIES)
        if answer is None:
            return
        waiting, left = list(answer.next), MOST_STAGES
        while waiting and left > 0:
            left -= len(waiting)
            answers = await asyncio.gather(*map(self._stage, waiting))
            waiting = [item for answer in answers if answer is not None for item in answer.next]
        await self._end_pipeline()

    async def _stage(self, item: Any) -> Any:
        if self._draw.random() < 0.1:
            await asyncio.sleep(self._draw.random() * 90)
        failed = self._draw.random() < 0.2
        route = route_pb2.Route(
            verdict=route_pb2.VERDICT_FAIL if failed else route_pb2.VERDICT_PASS,
            severity=route_pb2.SEVERITY_MEDIUM if failed else route_pb2.SEVERITY_UNSPECIFIED,
        )
        request = pipeline_pb.CompleteStageRequest(
            request_id=self._asking.new_key(), pipeline_id="pipe", delegation_id=item.delegation_id,
            agent_id="agent", route=route, auto_delegate=AUTO,
        )  # fmt: skip
        return await self._ask("pipeline", self._pipeline.CompleteStage, request)

    async def _end_pipeline(self) -> None:
        shown = await self._asking.insist(
            self._pipeline.GetPipeline, requests_pb2.GetPipelineRequest(pipeline_id="pipe"), MANY_TRIES
        )
        if shown is None or shown.pipeline.pipeline_active:
            cancel = requests_pb2.CancelPipelineRequest(request_id=self._asking.new_key(), pipeline_id="pipe")
            await self._ask("pipeline", self._pipeline.CancelPipeline, cancel, MANY_TRIES)
