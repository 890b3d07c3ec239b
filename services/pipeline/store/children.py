"""The child rows of pipelines: loads the stages that a batch needs, saves those that changed; caches DAGs."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, and_, delete, select

from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.engine.changes import AttachChildren, Change
from pointsman.services.chassis.storage.bulk import upsert_rows
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.pipeline.domain.dag import Graph, Node
from pointsman.services.pipeline.domain.enums import EventName
from pointsman.services.pipeline.domain.model import UNTOUCHED, Head, Pipeline, Stage
from pointsman.services.pipeline.domain.row_selection import stages_needed_by
from pointsman.services.pipeline.store.tables import PipelineTables

CACHED_GRAPHS = 128
_NO_GRAPH = Graph(())


class PipelineChildren:
    """Loads and saves the DAG, the stages and the reports of pipelines."""

    body_type: type = Head

    def __init__(self, database: Database, tables: PipelineTables) -> None:
        stages, shapes, reports = tables.stages, tables.shapes, tables.reports
        self._database = database
        self._graphs: OrderedDict[str, Graph] = OrderedDict()
        self._lock = threading.Lock()
        columns = select(stages.c.entity_id, stages.c.stage, stages.c.body)
        of_entity = any_of(database, stages.c.entity_id, "entities")
        some = and_(of_entity, any_of(database, stages.c.stage, "stages"))
        self._find_some = PreparedStatement(database, columns.where(some))
        self._find_all = PreparedStatement(database, columns.where(of_entity))
        shape = select(shapes.c.entity_id, shapes.c.body).where(any_of(database, shapes.c.entity_id, "entities"))
        self._find_shapes = PreparedStatement(database, shape)
        self._save_stage = upsert_rows(database, stages, ("entity_id", "stage"))
        self._save_shape = upsert_rows(database, shapes, ("entity_id",))
        dropped = delete(reports).where(any_of(database, reports.c.entity_id, "entities"))
        self._drop_reports = PreparedStatement(database, dropped)

    def body(self, state: Pipeline) -> Head:
        """The body of the entity's row."""
        return state.head

    def state(self, body: Any) -> Pipeline:
        """A pipeline of which only the head is loaded."""
        return Pipeline(body, _NO_GRAPH, {})

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> AttachChildren[Pipeline]:
        """Loads the rows after the heads: only the DAG of a pipeline says which stages a command needs."""
        return partial(self._attach, connection, commands)

    def _attach(
        self, connection: Connection, commands: Mapping[str, Sequence[Any]], states: Mapping[str, Pipeline]
    ) -> None:
        """Adds the DAG and the needed stages to each pipeline."""
        self._load_graphs(connection, states)
        some: dict[str, Pipeline] = {}
        whole: dict[str, Pipeline] = {}
        names: set[str] = set()
        for pipeline_id, pipeline in states.items():
            pipeline.loaded = dict(pipeline.stages)
            missing = _missing(pipeline, commands[pipeline_id])
            if missing is None:
                whole[pipeline_id] = pipeline
            elif missing:
                some[pipeline_id] = pipeline
                names |= missing
        if some:
            self._load_stages(connection, some, names)
        if whole:
            self._load_stages(connection, whole, None)

    def load_whole(self, connection: Connection, pipeline_id: str, pipeline: Pipeline) -> None:
        """Loads the DAG and all stages of a pipeline, for reading."""
        self._load_graphs(connection, {pipeline_id: pipeline})
        self._load_stages(connection, {pipeline_id: pipeline}, None)

    def save(self, connection: Connection, changes: Sequence[Change[Pipeline]]) -> None:
        """Writes new shapes and changed stages, and deletes the reports of cleaned-up pipelines."""
        shapes: list[dict[str, str]] = []
        stages: list[dict[str, str]] = []
        cleaned: list[str] = []
        for change in changes:
            pipeline = change.state
            assert pipeline is not None
            if change.is_new:
                shapes.append({"entity_id": change.entity_id, "body": to_json(pipeline.graph.nodes)})
                self._cache(pipeline.graph)
            stages += [
                {"entity_id": change.entity_id, "stage": name, "body": to_json(stage)}
                for name, stage in pipeline.stages.items()
                # A changed stage is always a new object, so identity shows what to write.
                if pipeline.loaded.get(name, UNTOUCHED) is not stage
            ]
            if any(event.name == EventName.PIPELINE_CLEANED for event in change.events):
                cleaned.append(change.entity_id)
        self._write(connection, shapes, stages, cleaned)

    def _write(
        self, connection: Connection, shapes: list[dict[str, str]], stages: list[dict[str, str]], cleaned: list[str]
    ) -> None:
        if shapes:
            self._save_shape.run(connection, shapes)
        if stages:
            self._save_stage.run(connection, stages)
        if cleaned:
            self._drop_reports.start(connection, {"entities": bind_list(self._database, cleaned)})

    def _load_graphs(self, connection: Connection, states: Mapping[str, Pipeline]) -> None:
        graphs = self._cached({pipeline.head.shape for pipeline in states.values()})
        missing = [key for key, pipeline in states.items() if pipeline.head.shape not in graphs]
        if missing:
            found = self._find_shapes.fetch(connection, {"entities": bind_list(self._database, missing)})
            for pipeline_id, body in found:
                graph = Graph(from_json(body, tuple[Node, ...]))
                graphs[states[pipeline_id].head.shape] = graph
                self._cache(graph)
        for pipeline in states.values():
            pipeline.graph = graphs[pipeline.head.shape]

    def _cached(self, shapes: set[str]) -> dict[str, Graph]:
        with self._lock:
            known = {shape: self._graphs[shape] for shape in shapes if shape in self._graphs}
            for shape in known:
                self._graphs.move_to_end(shape)
        return known

    def _cache(self, graph: Graph) -> None:
        with self._lock:
            self._graphs[graph.digest] = graph
            while len(self._graphs) > CACHED_GRAPHS:
                self._graphs.popitem(last=False)

    def _load_stages(self, connection: Connection, pipelines: Mapping[str, Pipeline], names: set[str] | None) -> None:
        """Loads the named stages, or all, that are not loaded yet; a stage without a row is untouched."""
        entities = bind_list(self._database, sorted(pipelines))
        if names is None:
            rows = self._find_all.fetch(connection, {"entities": entities})
        else:
            stages = bind_list(self._database, sorted(names))
            rows = self._find_some.fetch(connection, {"entities": entities, "stages": stages})
        bodies: dict[str, dict[str, str]] = {}
        for pipeline_id, name, body in rows:
            bodies.setdefault(pipeline_id, {})[name] = body
        for pipeline_id, pipeline in pipelines.items():
            known = bodies.get(pipeline_id, {})
            wanted = pipeline.graph.index.keys() if names is None else names & pipeline.graph.index.keys()
            for name in wanted - pipeline.stages.keys():
                stage = from_json(known[name], Stage) if name in known else UNTOUCHED
                pipeline.stages[name] = pipeline.loaded[name] = stage


def _missing(pipeline: Pipeline, commands: Sequence[Any]) -> set[str] | None:
    """The stages that commands need and that are not loaded; None means all."""
    needed: set[str] = set()
    for command in commands:
        stages = stages_needed_by(pipeline.graph, command)
        if stages is None:
            return None if len(pipeline.stages) < len(pipeline.graph.nodes) else set()
        needed |= stages
    return needed - pipeline.stages.keys()
