"""Spans are exported by a process of their own: it may die at any time, it ends with its service, it holds nobody up."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from pointsman._shared.otlp.queue import Queue
from pointsman.services.chassis.spans import exporter, follower
from pointsman.services.chassis.spans.exporter import MODULE, Exporter
from pointsman.services.chassis.telemetry.context import transition_span_id
from pointsman.services.chassis.telemetry.recording import CallRecord, ClientCall
from tests.contract.chassis.test_spans import OUTER, add, arrived, following, open_counters
from tests.helpers.children import children_of, parent_of
from tests.helpers.collector import Collector, collector, listening
from tests.helpers.counter import CounterStore
from tests.helpers.eventually import eventually, eventually_now
from tests.helpers.limits import scaled

MADE = ClientCall(OUTER, "router", "/pointsman.api.router.v1.RouterService/Classify", "OK", 0.5, 10**18)


class Deadly(Collector):
    """Takes a batch and, when it is told to, kills who has sent it before it learns that."""

    def __init__(self) -> None:
        super().__init__()
        self.kills = 0

    def keep(self, request: object) -> None:
        """Take a batch."""
        super().keep(request)
        if self.kills > 0:
            self.kills -= 1
            (exporting,) = children_of(os.getpid(), MODULE)
            os.kill(exporting, signal.SIGKILL)


@pytest.mark.parametrize("refuses", [0, 1])
async def test_a_process_that_is_killed_while_it_sends_is_replaced_and_every_transition_arrives(
    database_url: str, monkeypatch: pytest.MonkeyPatch, refuses: int
) -> None:
    monkeypatch.setattr(follower, "RETRY_SECONDS", 0.01)
    counters = open_counters(database_url)
    async with listening(Deadly()) as kept, following(counters, kept):
        for number in range(10):
            await add(counters, number, OUTER)
        await eventually(lambda: moved_to(counters, 10), 30)
        first = children_of(os.getpid(), MODULE)
        kept.kills, kept.refuse = 2, refuses
        with capture_logs() as logged:
            for number in range(10, 20):
                await add(counters, number, OUTER)
            wanted = {transition_span_id(OUTER[3:35], "c1", seq) for seq in range(1, 21)}
            await eventually(lambda: moved_to(counters, 20), 30)
        assert await arrived(kept, wanted)
        assert kept.kills == 0
        assert set(children_of(os.getpid(), MODULE)).isdisjoint(first)
    assert len(kept.by_id()) == 20 < len(kept.spans), "what nobody knew to have arrived was not sent again"
    ended = [line for line in logged if line["event"] == "span_process_ended"]
    assert [(line["code"], line["log_level"]) for line in ended] == [(-signal.SIGKILL, "warning")] * 2
    assert any(line["event"] == "span_export_failed" for line in logged)
    counters.store.close()


async def test_the_last_notes_are_sent_before_the_process_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setattr(exporter, "CLOSE_SECONDS", scaled(30))  # the process may not even have started by then
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with exporting() as noted:
            for _ in range(3):
                noted.add(MADE)
    assert [span.name for span in kept.spans] == [MADE.method[1:]] * 3
    assert children_of(os.getpid(), MODULE) == []


async def test_notes_for_a_collector_that_is_away_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    before = dropped()
    async with exporting() as noted:
        noted.add(MADE)
        noted.add(MADE)

        async def are_counted() -> bool:
            return dropped() == before + 2

        await eventually(are_counted, 30)


async def test_notes_whose_process_is_killed_are_counted_and_the_next_ones_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    before = dropped()
    async with listening(Deadly()) as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with exporting() as noted:
            kept.kills = 1
            noted.add(MADE)

            async def is_counted() -> bool:
                return dropped() == before + 1

            await eventually(is_counted, 30)
            noted.add(MADE)

            async def both_are_there() -> bool:
                return len(kept.spans) == 2

            await eventually(both_are_there, 30)


async def test_a_process_that_hangs_is_given_up_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    before = dropped()
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with exporting() as noted:
            noted.add(MADE)

            async def have_arrived() -> bool:
                return len(kept.spans) > 0

            await eventually(have_arrived, 30)
            (hanging,) = children_of(os.getpid(), MODULE)
            os.kill(hanging, signal.SIGSTOP)
            monkeypatch.setattr(exporter, "ANSWER_SECONDS", 0.2)
            noted.add(MADE)

            async def is_counted() -> bool:
                return dropped() == before + 1

            await eventually(is_counted, 30)
            monkeypatch.setattr(exporter, "ANSWER_SECONDS", 60.0)
            noted.add(MADE)

            async def next_one_is_there() -> bool:
                return len(kept.spans) == 2

            await eventually(next_one_is_there, 30)
            assert hanging not in children_of(os.getpid(), MODULE)


def test_a_killed_service_leaves_no_process_behind_and_signals_to_all_are_not_heard_by_it(tmp_path: Path) -> None:
    with service(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as started:
        (exporting,) = eventually_now(lambda: children_of(started.pid, MODULE))
        assert unheard_by(exporting) >= {signal.SIGINT, signal.SIGTERM}
        started.kill()
        started.wait()
        eventually_now(lambda: parent_of(exporting) is None)


def test_a_service_that_is_stopped_ends_its_process(tmp_path: Path) -> None:
    with service(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as started:
        (exporting,) = eventually_now(lambda: children_of(started.pid, MODULE))
        started.terminate()
        assert started.wait(scaled(30)) == 0
        assert parent_of(exporting) is None


def test_without_a_collector_there_is_no_process_and_nothing_is_imported_for_one(tmp_path: Path) -> None:
    with service(tmp_path) as started:
        assert children_of(started.pid) == []
    asked = "import sys, pointsman.services.router.__main__; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert not {MODULE, Exporter.__module__, follower.__name__, "opentelemetry"}.intersection(shown)


@asynccontextmanager
async def exporting() -> AsyncIterator[Queue[CallRecord]]:
    noted: Queue[CallRecord] = Queue()
    started = Exporter(noted)
    started.start()
    try:
        yield noted
    finally:
        await started.close()


@contextmanager
def service(data: Path, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A router in a process of its own that takes calls."""
    started = subprocess.Popen(
        [sys.executable, "-m", "pointsman.services.router"],
        env={**os.environ, **environment, "POINTSMAN_DATA": str(data), "POINTSMAN_SERVER_PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert started.stdout is not None
    with started.stdout:
        try:
            assert started.stdout.readline()
            yield started
        finally:
            started.kill()
            started.wait()


def unheard_by(pid: int) -> set[int]:
    """The signals that a process does not hear."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {number for number in signal.valid_signals() if int(status["SigBlk"], 16) >> (number - 1) & 1}


def dropped() -> float:
    return REGISTRY.get_sample_value("pointsman_spans_dropped_total") or 0.0


async def moved_to(counters: CounterStore, position: int) -> bool:
    cursors = counters.store.tables.cursors
    query = cursors.select().where(cursors.c.name == follower.LEASE_NAME)
    row = await counters.store.database.read(lambda connection: connection.execute(query).first())
    return row is not None and row.position == position
