"""Random DAGs under both policies, all active stages finished at the same time, on both databases, while a person meddles.

The journal's order explains the state: a naive model that hears the same words in that order ends in the same place.
"""

import asyncio
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.engine.journal import broken_links
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.pipeline.__main__ import MIGRATIONS
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.enums import EventName, PipelineStatus, Policy, RouteSource
from pointsman.services.pipeline.domain.machine import MACHINE
from pointsman.services.pipeline.domain.model import ACTIVE, ESCALATED, PASSED, READY, Pipeline, Settings
from pointsman.services.pipeline.domain.route import ReportedRoute
from pointsman.services.pipeline.store import PipelineStore
from tests.unit.pipeline.model import WORDS, Model, graphs

AUTO = commands.AutoDelegate("agent")
ROUNDS = 8
EXAMPLES = int(os.environ.get("POINTSMAN_RANDOM_PIPELINES", "25"))
"""How many random pipelines on each database; a campaign asks for more."""
WORDS_SAID = {
    "pass": (ReportedRoute(RouteSource.TYPED, "PASS", "NEXT"),),
    "fail": (ReportedRoute(RouteSource.TYPED, "FAIL", "DEV"),),
    "fail badly": (ReportedRoute(RouteSource.TYPED, "FAIL", "DEV", "CRITICAL"),),
    "garbled": (ReportedRoute(RouteSource.MARKER, "never heard of it", "NEXT"),),
    "silent": (),
}
"""What an agent may say of its stage; every second one is content, or no pipeline would ever end."""
MEDDLING = ("nobody", "nobody", "skip", "restart")
_numbers = itertools.count(1)
Saying = dict[tuple[str, int], str]


def caller() -> Caller:
    return Caller("local", "local", request_id=f"r{next(_numbers)}", fingerprint="same")


@dataclass
class Crowd:
    """Agents and a person who all act at the same time, and what each agent said of which delegation."""

    store: PipelineStore
    pipeline_id: str
    words: Iterator[str]
    meddling: Iterator[str]
    said: Saying = field(default_factory=dict)

    async def drive(self, graph: Graph, policy: Policy) -> None:
        """Finish everything that is active at once, a few times over; each result is sent twice."""
        begin = commands.StartPipeline(self.pipeline_id, Settings(policy=policy), graph, "seed", {}, AUTO)
        await self.store.submit(caller(), begin)
        for _ in range(ROUNDS):
            pipeline = (await self.store.get("local", self.pipeline_id)).pipeline
            if not pipeline.is_live():
                return
            submitted: list[Any] = [*self._results(pipeline), *self._meddled(pipeline)]
            submitted += [
                commands.DelegateStage(self.pipeline_id, stage, "agent", "s") for stage in pipeline.marked(READY)
            ]
            results = (self.store.submit(caller(), command) for command in submitted)
            for outcome in await asyncio.gather(*results, return_exceptions=True):
                assert not isinstance(outcome, BaseException) or isinstance(outcome, Refusal)

    def _results(self, pipeline: Pipeline) -> Iterator[commands.CompleteStage]:
        for stage in pipeline.marked(ACTIVE):
            number = pipeline.stages[stage].delegations
            word = self.said.setdefault((stage, number), next(self.words))
            command = commands.CompleteStage(
                self.pipeline_id, f"{stage}#{number}", "agent", "s", WORDS_SAID[word], None, AUTO
            )
            yield from (command, command)

    def _meddled(self, pipeline: Pipeline) -> Iterator[commands.SkipStage | commands.RestartFrom]:
        what = next(self.meddling)
        if what == "skip":
            yield from (commands.SkipStage(self.pipeline_id, stage) for stage in pipeline.marked(ESCALATED)[:1])
            yield from (commands.SkipStage(self.pipeline_id, stage) for stage in pipeline.marked(ACTIVE)[:1])
        if what == "restart":
            over = (*pipeline.marked(PASSED), *pipeline.marked(ESCALATED))
            yield from (commands.RestartFrom(self.pipeline_id, stage) for stage in over[-1:])


async def judged(crowd: Crowd, graph: Graph, policy: Policy) -> None:
    """Tell the model what the journal says happened; both must end in the same place."""
    model = Model(graph, strict=policy is Policy.STRICT)
    rows = await crowd.store.journal.page("local", ("pipeline", crowd.pipeline_id), 0, 10_000)
    assert broken_links(rows) == []
    for row in rows:
        retell(model, row.event, from_json(row.payload, MACHINE.events[row.event]), crowd.said)
    pipeline = (await crowd.store.get("local", crowd.pipeline_id)).pipeline
    assert {stage: WORDS[pipeline.status_of(stage)] for stage in graph.index} == model.stages
    assert {stage: known.retries for stage, known in pipeline.stages.items()} == model.retries
    assert {stage: known.crashes for stage, known in pipeline.stages.items()} == model.crashes
    ends = {PipelineStatus.COMPLETED: "well", PipelineStatus.COMPLETED_WITH_FAILURES: "with failures"}
    assert ends.get(pipeline.head.status, "") == model.ended
    assert [row.event for row in rows].count(EventName.BARRIER_RESOLVED) == model.resolved


def retell(model: Model, event: str, data: Any, said: Saying) -> None:
    """One row of the journal; of what agents said the model hears their own words, not what was made of them."""
    if event == EventName.STAGE_DELEGATED:
        assert model.stages[data.stage] == "ready"
        model.take(data.stage)
    elif event == EventName.STAGE_SKIPPED:
        model.skip(data.stage)
    elif event == EventName.STAGE_RESTARTED:
        model.restart(data.stage)
    elif event == EventName.ROUTE_FALLBACK:
        assert model.stages[data.stage] == "active"
        model.mumble(data.stage)
    elif event in {EventName.STAGE_COMPLETED, EventName.STAGE_FAILED} and said[data.stage, data.number] != "silent":
        assert model.stages[data.stage] == "active"
        hear(model, data.stage, said[data.stage, data.number])


def hear(model: Model, stage: str, word: str) -> None:
    """An agent's word, told to the model."""
    if word == "garbled":
        model.garble(stage)
    else:
        model.finish(stage, passed=word == "pass")


def test_random_pipelines_with_concurrent_completions_agree_with_the_model(database_url: str) -> None:
    database = Database(database_url, "pipeline")
    migrate(database, MIGRATIONS)
    store = PipelineStore(database)

    words = st.lists(st.sampled_from([*WORDS_SAID, *["pass"] * len(WORDS_SAID)]), min_size=1, max_size=9)
    meddling = st.lists(st.sampled_from(MEDDLING), min_size=1, max_size=5)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(graph=graphs(), policy=st.sampled_from(Policy), words=words, meddling=meddling)
    def check(graph: Graph, policy: Policy, words: list[str], meddling: list[str]) -> None:
        async def run() -> None:
            store.store.hub.bind()
            crowd = Crowd(store, f"p{next(_numbers)}", itertools.cycle(words), itertools.cycle(meddling))
            await crowd.drive(graph, policy)
            await judged(crowd, graph, policy)

        asyncio.run(run())

    try:
        check()
    finally:
        store.store.close()
