"""Any pipeline survives export and import, and any JSON at all is taken or refused, never worse."""

import json
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.core.errors import Code, Refusal
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.enums import Policy
from pointsman.services.pipeline.domain.events import PipelineImported
from pointsman.services.pipeline.domain.model import PENDING, READY, Pipeline
from pointsman.services.pipeline.formats.state_file_reader import StateFile, read_state_file
from pointsman.services.pipeline.formats.state_file_writer import write_state_file
from tests.unit.pipeline.driver import START, Drive, said, start
from tests.unit.pipeline.model import graphs

RANDOM = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
STEPS = st.lists(st.tuples(st.sampled_from("ddccccsrt"), st.integers(0, 9), st.integers(0, 9)), max_size=14)
SAID = (
    ("PASS", "NEXT"), ("PASS", "NEXT"), ("FAIL", "DEV"), ("FAIL", "NEXT"), ("PASS", "DEV"), ("FAIL", "BARRIER"),
    ("never heard of it", "NEXT"), ("PASS", "COMPLETE"), ("PASS", "NEXT"), ("FAIL", "ABORT"),
)  # fmt: skip


def step(drive: Drive, kind: str, place: int, way: int) -> object:
    """One command that may or may not be possible; the answer, or why not."""
    nodes = drive.pipeline.graph.nodes
    if not nodes:
        return None
    stage = nodes[place % len(nodes)].stage
    known = drive.pipeline.stages[stage]
    try:
        if kind == "d":
            return drive.do(commands.DelegateStage("p", stage, "agent", f"seed {place}"))
        if kind == "c":
            verdict, route = SAID[way]
            words = said(verdict, route, severity=("LOW", "HIGH", None)[way % 3], hint=f"hint {way}", nonce=known.nonce)
            return drive.complete(
                stage, () if way == 8 else words, auto=commands.AutoDelegate("agent") if place % 2 else None
            )
        if kind == "t":
            waiting = sorted(timer for timer in drive.timers if timer.startswith("barrier:"))
            return drive.fire(waiting[place % len(waiting)]) if waiting else None
        command = commands.SkipStage("p", stage) if kind == "s" else commands.RestartFrom("p", stage)
        return drive.do(command)
    except Refusal as refusal:
        return refusal.reason


def again(pipeline: Pipeline, drive: Drive) -> Drive:
    """The pipeline after export and import, at the same moment."""
    state_json, barrier_json = write_state_file("p", pipeline)
    copy = Drive(now=drive.now)
    copy.do(commands.ImportPipeline("p", read_state_file(state_json, barrier_json, "", drive.now).imported))
    return copy


def shown(drive: Drive) -> dict[str, Any]:
    """What of a pipeline has to survive."""
    pipeline = drive.pipeline
    head = pipeline.head
    stages = {}
    for stage, known in pipeline.stages.items():
        over = pipeline.mark(stage) not in {PENDING, READY}
        facts = known.agent_id, known.delegations, known.nonce, known.hint, known.retries, known.crashes, known.history
        verdict = (known.verdict, known.severity) if over else None
        returned = known.returned and (known.returned.round, known.returned.failed, known.returned.hint)
        stages[stage] = (*facts, verdict, returned, known.reflection)
    barriers = {
        group: (barrier.created_at, barrier.due_at and max(barrier.due_at, drive.now))
        for group, barrier in head.barriers.items()
    }
    timers = {name: max(timer.due_at, drive.now) for name, timer in drive.timers.items() if name != "clean-up"}
    marks = (
        head.marks if head.ended_at is None else head.marks.replace(READY, PENDING)
    )  # nothing can begin after the end
    about = (head.settings, marks, head.status, head.returns, head.ended_at is None)
    return {"head": about, "nodes": pipeline.graph.nodes, "stages": stages, "barriers": barriers, "timers": timers}


SETTINGS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(Policy),
        "require_nonce": st.booleans(),
        "barrier_timeout_seconds": st.sampled_from([1.0, 300.0, 3600.5]),
        "env": st.just({"language": "python"}),
    }
)


@RANDOM
@given(graph=graphs(), started_with=SETTINGS, before=STEPS, after=STEPS)
def test_a_random_pipeline_survives_export_and_import_and_goes_on_as_if_nothing_had_been(
    graph: Graph, started_with: Any, before: Any, after: Any
) -> None:
    drive = start(graph=graph, **started_with)
    for kind, place, way in before:
        step(drive, kind, place, way)
        drive.wait(7)
    copy = again(drive.pipeline, drive)
    assert shown(copy) == shown(drive)
    for kind, place, way in after:
        first, second = step(drive, kind, place, way), step(copy, kind, place, way)
        assert type(first) is type(second)
        assert shown(copy)["head"] == shown(drive)["head"]
        assert shown(copy)["barriers"].keys() == shown(drive)["barriers"].keys()


STAGES = st.sampled_from(["PLAN", "DEV", "REVIEW", "TEST", "QA", "E2E", "DOCS", "TEST:write", "COOK"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MOMENTS = st.sampled_from([START.isoformat(), "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00", "yesterday"])


def near(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of these fields, each as it should be or anything at all."""
    often = {name: field | field | field | VALUES for name, field in fields.items()}
    plain: st.SearchStrategy[Any] = st.fixed_dictionaries({}, optional=often)
    return plain | plain | plain | VALUES


def each(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(STAGES, value, max_size=5)


NODES = near(
    deps=st.lists(STAGES, max_size=2), next=st.lists(STAGES, max_size=2), onFail=STAGES, maxRetries=st.integers(0, 3),
    kind=STAGES, barrier=near(group=st.sampled_from("ab")),
)  # fmt: skip
KNOWN = near(
    status=st.sampled_from(["pending", "active", "completed", "failed", "skipped", "timed_out", "escalated"]),
    verdict=st.sampled_from(["PASS", "FAIL", "FAIL:HIGH"]), severity=st.just("LOW"), degraded=st.booleans(),
    forcedOn=st.booleans(), delegations=st.integers(0, 3), reflection=st.just("## Round 1\nx"),
    returned=near(failed=st.lists(STAGES, max_size=2), round=st.integers(0, 3)), agent=st.just("a"),
)  # fmt: skip
FILES = near(
    version=st.sampled_from([3, 4]), sessionId=st.text(max_size=5), dag=each(NODES), stages=each(KNOWN),
    classification=near(pipelineId=st.sampled_from(["full", "quick-dev", "none", "own"])), pipelineActive=st.booleans(),
    enforced=st.booleans(), retries=each(st.integers(0, 3) | VALUES), crashes=each(st.integers(0, 3) | VALUES),
    retryHistory=each(st.lists(near(severity=st.just("LOW"), at=MOMENTS, round=st.integers(0, 3)), max_size=2)),
    pendingRetry=near(stages=st.lists(near(stage=STAGES), max_size=2)), environment=near(language=st.text(max_size=3)),
    meta=near(status=st.sampled_from(["ABORTED", "ESCALATED"]), pointsman=near(policy=st.sampled_from(Policy))),
)  # fmt: skip
BARRIERS = st.dictionaries(st.sampled_from(["a", "b", "post-dev", "post-qa"]), near(startTime=MOMENTS), max_size=3)


def read_or_refused(state_json: str, barrier_json: str) -> StateFile | Refusal:
    """What the reader makes of it; any other exception is a bug."""
    try:
        return read_state_file(state_json, barrier_json, "", START)
    except Refusal as refusal:
        return refusal


@settings(RANDOM, max_examples=500)
@given(content=FILES, barriers=BARRIERS | VALUES, steps=STEPS)
def test_json_of_any_shape_is_taken_or_refused_and_what_is_taken_runs(content: Any, barriers: Any, steps: Any) -> None:
    read = read_or_refused(json.dumps(content), json.dumps(barriers))
    if isinstance(read, Refusal):
        assert read.code is Code.INVALID_ARGUMENT
        assert len(read.message) < 2000
        return
    assert from_json(to_json(read.imported), PipelineImported) == read.imported
    drive = Drive(now=START + timedelta(seconds=1))
    drive.do(commands.ImportPipeline("p", read.imported))
    assert write_state_file("p", again(drive.pipeline, drive).pipeline) == write_state_file("p", drive.pipeline)
    for kind, place, way in steps:
        step(drive, kind, place, way)
