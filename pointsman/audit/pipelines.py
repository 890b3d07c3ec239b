"""Invariants of pipelines: allowed transitions, barriers that resolve once, bounded retries, forced stages as risks."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Table, select

from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.engine.audit import History, Violation
from pointsman.services.chassis.storage.store import Store
from pointsman.services.pipeline.domain import events as e
from pointsman.services.pipeline.domain.dag import Node
from pointsman.services.pipeline.domain.decision import barrier_timer
from pointsman.services.pipeline.domain.enums import EventName, PipelineStatus
from pointsman.services.pipeline.domain.model import ACTIVE, READY, UNPROVEN, UNTOUCHED, Pipeline, Stage
from pointsman.services.pipeline.domain.transitions import TRANSITIONS


class PipelineProof:
    """Checks pipelines one by one, and collects them for the comparison with the other stores."""

    def __init__(self, store: Store) -> None:
        tables = store.metadata.tables
        self._shapes, self._stages, self._reports = tables["shapes"], tables["stages"], tables["reports"]
        self.pipelines: dict[str, tuple[Pipeline, int]] = {}
        """Each pipeline with its version."""

    def __call__(self, connection: Connection, history: History) -> Iterator[Violation]:
        """Every violation of one pipeline."""
        self.pipelines[str(history.row.entity_id)] = (history.state, history.row.version)
        yield from _table(history)
        yield from _life(history)
        if history.row.status == PipelineStatus.ACTIVE:
            yield from _waits(history)
        for detail in self._rows(connection, history.row.entity_id, history.state):
            yield history.violation("fold", history.row.version, detail)

    def _rows(self, connection: Connection, pipeline_id: str, pipeline: Pipeline) -> Iterator[str]:
        """Differences between the child rows and the state rebuilt from the journal."""
        shapes = _bodies(connection, self._shapes, "entity_id", pipeline_id)
        if _read(shapes.get(pipeline_id), tuple[Node, ...]) != pipeline.graph.nodes:
            yield "its shape is not the one it was started with"
        stored = _bodies(connection, self._stages, "stage", pipeline_id)
        for stage in sorted(stored.keys() | pipeline.stages.keys()):
            row = _read(stored[stage], Stage) if stage in stored else UNTOUCHED
            if row != pipeline.stages.get(stage):
                yield f"stage {stage} is not what its journal says"
        yield from _reports(pipeline, _bodies(connection, self._reports, "sha256", pipeline_id))


def _reports(pipeline: Pipeline, bodies: dict[str, str]) -> Iterator[str]:
    for stage, known in pipeline.stages.items():
        if known.report and known.report not in bodies:
            yield f"the report of stage {stage} is gone"
    for digest, body in bodies.items():
        if sha256(body.encode()).hexdigest() != digest:
            yield f"the report {digest} is not what its digest says"
    if pipeline.head.cleaned and bodies:
        yield "it was cleaned up, but reports are left"


def _bodies(connection: Connection, table: Table, key: str, pipeline_id: str) -> dict[str, str]:
    wanted = select(table.c[key], table.c.body).where(table.c.entity_id == pipeline_id)
    return {row[0]: row[1] for row in connection.execute(wanted)}


def _read(body: str | None, expected: Any) -> Any:
    """A row's value; None where the row is missing or cannot be decoded."""
    try:
        return None if body is None else from_json(body, expected)
    except Refusal:
        return None


def _table(history: History) -> Iterator[Violation]:
    for step in history.steps:
        if (step.source, step.target) not in TRANSITIONS[EventName(step.event)]:
            yield history.violation("table", step.seq, f"{step.source} {step.event} {step.target} is not in the table")


def _life(history: History) -> Iterator[Violation]:
    """Violations of barriers, retries and endings, step by step."""
    open_before: dict[str, int] = {}
    marks_before = ""
    used: set[int] = set()
    for step, event, pipeline in history.walk():
        problems = [
            *_barriers(event.data, open_before, used),
            *_stages(event.data, marks_before, pipeline),
            *_end(step.target, pipeline),
        ]
        for invariant, detail in problems:
            yield history.violation(invariant, step.seq, detail)
        open_before = {group: barrier.number for group, barrier in pipeline.head.barriers.items()}
        marks_before = pipeline.head.marks


def _barriers(data: object, open_before: dict[str, int], used: set[int]) -> Iterator[tuple[str, str]]:
    if isinstance(data, e.BarrierCreated):
        if data.number in used:
            yield "barrier", f"barrier {data.number} of {data.group} is created a second time"
        if len(set(data.members)) != len(data.members) or not data.members:
            yield "barrier", f"barrier {data.number} of {data.group} counts a member twice, or has none"
        used.add(data.number)
    if isinstance(data, e.BarrierResolved) and open_before.get(data.group) != data.number:
        yield "barrier", f"barrier {data.number} of {data.group} is resolved, but it was not open"


def _stages(data: object, marks_before: str, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if isinstance(data, e.StageFinished) and marks_before[pipeline.graph.index[data.stage]] != ACTIVE:
        yield "barrier", f"{data.stage} was counted although nobody was at work on it"
    if isinstance(data, e.StageRetry):
        for stage in data.counted:
            retries, limit = pipeline.stages[stage].retries, pipeline.graph.node(stage).max_retries
            if retries > limit:
                yield "retries", f"{stage} was tried again {retries} times, {limit} are allowed"


def _end(target: str, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if target == PipelineStatus.COMPLETED and not UNPROVEN.isdisjoint(pipeline.head.marks):
        yield "evidence", "a stage that was forced on is counted as a pass"


def _waits(history: History) -> Iterator[Violation]:
    """A live pipeline has a stage to delegate or to wait for; a waiting barrier has a timer."""
    pipeline: Pipeline = history.state
    if not pipeline.head.barriers and {ACTIVE, READY}.isdisjoint(pipeline.head.marks):
        yield history.violation("waiting", history.row.version, "no stage is ready or at work, and it has not ended")
    for group, barrier in pipeline.head.barriers.items():
        if barrier.due_at is not None and barrier_timer(group) not in history.timers:
            yield history.violation("waiting", history.row.version, f"the barrier {group} waits without a timer")
