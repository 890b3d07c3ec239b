"""Invariants across stores: run, workflow and pipelines agree once nothing is under way; each run is one trace."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pointsman.audit.pipelines import PipelineProof
from pointsman.audit.runs import RunProof
from pointsman.audit.workflows import WorkflowProof
from pointsman.services.chassis.engine.audit import Violation
from pointsman.services.chassis.telemetry.context import new_traceparent, valid_traceparent
from pointsman.services.orchestrator.domain.ending import leaves_epic_resumable
from pointsman.services.orchestrator.domain.enums import PIPELINE_ENDED, State, TaskStatus
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.workflow.domain.enums import SETTLED_TASKS, WorkflowStatus
from pointsman.services.workflow.domain.model import Workflow

WORKFLOW = "workflow"
ROUTER = "router"
"""Its spans are below the call that asked it: a decision precedes its run, and a question never has one."""


@dataclass(frozen=True, slots=True)
class Traced:
    """An entity of any store, with the trace it belongs to."""

    store: str
    entity_id: str
    run_id: str
    version: int
    created_at_us: int
    traceparent: str

    @property
    def has_own_trace(self) -> bool:
        """Whether it is the root of its trace: no call that created or claimed it named another trace."""
        own = new_traceparent(self.entity_id, self.created_at_us)
        return self.run_id in ("", self.entity_id) or self.traceparent == own

    @property
    def trace_id(self) -> str:
        """The trace id."""
        return self.traceparent[3:35]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The states of the four stores, each of which was checked by itself before."""

    runs: RunProof
    workflows: WorkflowProof
    pipelines: PipelineProof
    traced: list[Traced]

    def violations(self) -> Iterator[Violation]:
        """Every difference between the stores."""
        for run, version, busy in self.runs.runs.values():
            for detail in self._of_run(run) if not busy else ():
                yield Violation("agreement", run.run_id, version, detail)
        yield from self._live_pipelines()
        yield from self._traces()

    def _of_run(self, run: Run) -> Iterator[str]:
        yield from self._tasks(run)
        if not run.epic_id:
            return
        workflow = self.workflows.workflows.get(run.epic_id)
        if workflow is not None:
            replaced = not workflow.header.run_id  # by an import: nothing in it is the run's any more
            yield from self._workflow(run, workflow) if not replaced else ()
        elif not run.ended or run.status is State.COMPLETE:
            yield f"its workflow {run.epic_id} is not there"

    def _tasks(self, run: Run) -> Iterator[str]:
        """A task is accepted only from a pipeline whose state is the one that the run knows."""
        for task_id, task in run.tasks.items():
            if not task.pipeline_id or task.pipeline_status is None:
                continue
            found = self.pipelines.pipelines.get(task.pipeline_id)
            status = str(found[0].head.status) if found else "not there"
            settled = task.pipeline_status in PIPELINE_ENDED
            if settled and status != str(task.pipeline_status) and task.status is TaskStatus.ACCEPTED:
                yield f"{task_id} was accepted from a pipeline that is {status}, not {task.pipeline_status}"

    def _workflow(self, run: Run, workflow: Workflow) -> Iterator[str]:
        header, tasks = workflow.header, workflow.tasks.by_id
        if run.status is State.COMPLETE and header.status is not WorkflowStatus.COMPLETED:
            yield f"it is COMPLETE, its workflow {run.epic_id} is {header.status}"
        for task_id, task in run.tasks.items():
            accepted = task.status is TaskStatus.ACCEPTED and task.attempt > 0 and run.status is not State.CANCELLED
            if accepted and (task_id not in tasks or tasks[task_id].status not in SETTLED_TASKS):
                yield f"{task_id} is accepted, but not done in the workflow {run.epic_id}"
        if not run.ended or run.status is State.COMPLETE:
            return
        if header.status is WorkflowStatus.COMPLETED:
            return
        if header.owner_run_id == run.run_id:
            yield f"it is {run.status} and still owns the workflow {run.epic_id}"
        was_cancelled = header.cancelled or header.cancelled_by == run.run_id
        if not leaves_epic_resumable(run) and header.run_id == run.run_id and not was_cancelled:
            yield f"it is {run.status}, its workflow {run.epic_id} goes on ({header.status})"

    def _live_pipelines(self) -> Iterator[Violation]:
        """No pipeline of a run is live after the run has ended or moved to another attempt."""
        for pipeline_id, (pipeline, version) in self.pipelines.pipelines.items():
            known = self.runs.runs.get(pipeline.head.settings.run_id)
            if known is None or not pipeline.is_live():
                continue
            run, _, busy = known
            if not pipeline_id.startswith(f"{run.run_id}/"):
                continue  # a client started it and only named the run
            if not busy and pipeline_id not in run.live_pipelines:
                detail = f"it goes on, but the run {run.run_id} ({run.status}) does not wait for it"
                yield Violation("agreement", pipeline_id, version, detail)

    def _traces(self) -> Iterator[Violation]:
        """Every entity of a run is in the run's trace."""
        roots: Mapping[str, Traced] = {item.entity_id: item for item in self.traced}
        for item in self.traced:
            if not valid_traceparent(item.traceparent):
                yield Violation("trace", item.entity_id, item.version, "it has no trace")
            if item.has_own_trace or item.store == ROUTER:
                continue
            root = roots.get(item.run_id)
            if root is None and not self._outlives_runs(item):
                yield Violation("trace", item.entity_id, item.version, f"its spans have no root: no run {item.run_id}")
            elif root is not None and root.trace_id != item.trace_id:
                yield Violation("trace", item.entity_id, item.version, f"it is in another trace than {item.run_id}")

    def _outlives_runs(self, item: Traced) -> bool:
        """Whether it is a released workflow, which stays when retention removes its last run."""
        workflow = self.workflows.workflows.get(item.entity_id) if item.store == WORKFLOW else None
        return workflow is not None and not workflow.header.owner_run_id
