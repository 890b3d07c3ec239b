"""Random DAGs, all active stages completed at the same time, on both databases: the journal's order explains the state."""

import asyncio
import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointsman.services.chassis.auth import Caller
from pointsman.services.chassis.codec import from_text
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.journal import broken_links
from pointsman.services.chassis.migrate import migrate
from pointsman.services.chassis.refusals import Refusal
from pointsman.services.pipeline.__main__ import MIGRATIONS
from pointsman.services.pipeline.domain import commands as c
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.machine import MACHINE
from pointsman.services.pipeline.domain.marker import Reported
from pointsman.services.pipeline.domain.state import ACTIVE, Settings
from pointsman.services.pipeline.domain.words import EventName, RouteSource
from pointsman.services.pipeline.store import PipelineStore
from tests.unit.pipeline.model import WORDS, Model, graphs

AUTO = c.AutoDelegate("agent")
ROUNDS = 6
_numbers = itertools.count(1)


def caller() -> Caller:
    return Caller("local", "local", request_id=f"r{next(_numbers)}", fingerprint="same")


async def drive(store: PipelineStore, pipeline_id: str, graph: Graph, verdicts: list[bool]) -> None:
    """Complete everything that is active at once, a few times over; each result is sent twice."""
    await store.submit(caller(), c.StartPipeline(pipeline_id, Settings(), graph, "seed", {}, AUTO))
    said = itertools.cycle(verdicts)
    for _ in range(ROUNDS):
        pipeline = (await store.get("local", pipeline_id)).pipeline
        if not pipeline.is_live():
            return
        commands = []
        for stage in pipeline.marked(ACTIVE):
            reported = Reported(RouteSource.TYPED, *(("PASS", "NEXT") if next(said) else ("FAIL", "DEV")))
            number = pipeline.stages[stage].delegations
            commands += [c.CompleteStage(pipeline_id, f"{stage}#{number}", "agent", "s", (reported,), None, AUTO)] * 2
        results = (store.submit(caller(), command) for command in commands)
        for outcome in await asyncio.gather(*results, return_exceptions=True):
            assert not isinstance(outcome, BaseException) or isinstance(outcome, Refusal)


async def judged(store: PipelineStore, pipeline_id: str, graph: Graph) -> None:
    """Tell the model what the journal says happened; both must end in the same place."""
    model = Model(graph)
    rows = await store.journal.page("local", ("pipeline", pipeline_id), 0, 10_000)
    assert broken_links(rows) == []
    for row in rows:
        data = from_text(row.payload, MACHINE.events[row.event])
        if row.event == EventName.STAGE_DELEGATED:
            assert model.stages[data.stage] == "ready"
            model.take(data.stage)
        if row.event in {EventName.STAGE_COMPLETED, EventName.STAGE_FAILED}:
            assert model.stages[data.stage] == "active"
            model.finish(data.stage, passed=row.event == EventName.STAGE_COMPLETED)
    pipeline = (await store.get("local", pipeline_id)).pipeline
    assert {stage: WORDS[pipeline.status_of(stage)] for stage in graph.index} == model.stages
    assert {stage: known.retries for stage, known in pipeline.stages.items()} == model.retries
    resolved = [row.event for row in rows].count(EventName.BARRIER_RESOLVED)
    assert resolved == model.resolved


def test_random_pipelines_with_concurrent_completions_agree_with_the_model(database_url: str) -> None:
    database = Database(database_url, "pipeline")
    migrate(database, MIGRATIONS)
    store = PipelineStore(database)

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(graph=graphs(), verdicts=st.lists(st.booleans(), min_size=1, max_size=7))
    def check(graph: Graph, verdicts: list[bool]) -> None:
        async def run() -> None:
            store.store.hub.bind()
            pipeline_id = f"p{next(_numbers)}"
            await drive(store, pipeline_id, graph, verdicts)
            await judged(store, pipeline_id, graph)

        asyncio.run(run())

    try:
        check()
    finally:
        store.store.close()
