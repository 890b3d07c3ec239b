"""A run leaves one trace over all four services, and stores that keep their promises."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.cli.audit_stores import audit_stores
from pointsman.services.chassis.config import StoreSettings
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.telemetry import transition_span_id
from tests.helpers.collector import Collector, collector
from tests.helpers.counter import CounterStore
from tests.helpers.eventually import eventually
from tests.scenarios.planes import WISH, plane

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")


def steps_of(data: Path, run_id: str) -> set[str]:
    """The span ids that the journals of all four stores ask for."""
    wanted: set[str] = set()
    for name in CONTEXTS:
        database = Database(StoreSettings(data=data).url_for(name), name)
        journal = CounterStore(database).store.tables.journal
        found = select(journal.c.entity_id, journal.c.seq).where(journal.c.run_id == run_id)
        rows = database.read_now(lambda connection: connection.execute(found).all())  # noqa: B023
        wanted |= {transition_span_id(entity_id, seq) for entity_id, seq in rows}
        database.close()
    return wanted


async def test_every_transition_of_a_run_is_a_span_of_one_trace_with_one_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
        async with plane(tmp_path) as control:
            run = await control.ended((await control.submit(WISH)).id)
            assert run.state == runs.RUN_STATE_COMPLETE
            root = transition_span_id(run.id, 0)
            wanted = steps_of(tmp_path, run.id) | {root}
            await eventually(lambda: arrived(kept, wanted), 20)
    spans = {key: span for key, span in kept.by_id().items() if run.id in ids_of(span)}
    assert {span.trace_id.hex() for span in spans.values()} == {run.traceparent[3:35]}
    assert [key for key, span in spans.items() if span.parent_span_id.hex() not in spans] == [root]
    assert len(spans) == len(wanted) > 60
    assert {span.name.split()[0] for span in spans.values()} >= {"run", "workflow", "pipeline"}


async def test_after_good_and_bad_runs_no_store_has_broken_a_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with plane(tmp_path) as control:
        first = await control.submit(WISH)
        await control.ended(first.id)
        second = await control.submit("Delete every table of the old schema in db/legacy.sql")
        await control.asked(second.id)
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path))
    code = await asyncio.to_thread(audit_stores, as_json=False)
    assert code == 0, capsys.readouterr().out


async def arrived(kept: Collector, wanted: set[str]) -> bool:
    return wanted <= set(kept.by_id())


def ids_of(span: Any) -> set[str]:
    return {attribute.value.string_value for attribute in span.attributes}
