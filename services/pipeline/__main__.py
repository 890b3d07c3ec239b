"""Wires the pipeline service together; `python -m pointsman.services.pipeline` serves it alone."""

from pathlib import Path

from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.engine.timers import TimerRunner
from pointsman.services.chassis.runtime.service import Service, serve_alone
from pointsman.services.chassis.storage.database import Database
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.pipeline.loops import PipelineTimers
from pointsman.services.pipeline.servicer import PipelineServicer
from pointsman.services.pipeline.store import PipelineStore

MIGRATIONS = Path(__file__).parent / "migrations"


def build(stores: StoreSettings, settings: PipelineSettings) -> Service:
    """The pipeline service on its own store."""
    return build_on(Database(stores.url_for("pipeline"), "pipeline"), settings)


def build_on(database: Database, settings: PipelineSettings) -> Service:
    """The pipeline service on a given database."""
    pipelines = PipelineStore(database)
    timers = TimerRunner(pipelines.store, PipelineTimers(pipelines).fire, settings.timer_poll_seconds)
    servicer = PipelineServicer(pipelines, settings)
    descriptor = pipeline_pb2.DESCRIPTOR.services_by_name["PipelineService"]
    return Service("pipeline", pipelines.store, MIGRATIONS, [(descriptor, servicer)], [("timers", timers.run)])


if __name__ == "__main__":
    serve_alone(lambda _address: [build(load(StoreSettings), load(PipelineSettings))])
