"""Every number is fed: each is made to happen, and read where Prometheus reads it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.api.router.v1 import decision_pb2
from pointsman.api.workflow.v1 import tasks_pb2
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.runtime.housekeeping import measure_store
from pointsman.services.chassis.spans import follower
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.orchestrator.domain import commands
from tests.contract.orchestrator.orchestrators import caller, key_of, orchestrator, researching, take
from tests.contract.pipeline.pipelines import FAIL, served
from tests.contract.router.routers import served as router_served
from tests.contract.workflow.workflows import served as workflow_served
from tests.contract.workflow.workflows import task
from tests.helpers.clock import FakeClock
from tests.helpers.collector import collector
from tests.helpers.counter import Add
from tests.helpers.counters import a_caller, held, opened, running
from tests.helpers.declared_metrics import DECLARED, MODULES
from tests.helpers.eventually import eventually
from tests.scenarios.planes import plane


def value(name: str, /, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def counted(name: str, times: float = 1, /, **labels: str) -> AsyncIterator[None]:
    """The block makes the number grow by so much."""
    before = value(name, **labels)
    yield
    await eventually(lambda: _is(value(name, **labels) - before == times), 30)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


async def test_a_decision_counts_by_its_mode_and_confidence(url: str) -> None:
    async with router_served(url) as client:
        made = await client.classify("Fix the failing test in src/parser.py")
        labels = {
            "mode": decision_pb2.Mode.Name(made.mode).removeprefix("MODE_"),
            "confidence": decision_pb2.Confidence.Name(made.confidence).removeprefix("CONFIDENCE_"),
        }
        async with counted("pointsman_router_decisions_total", **labels):
            await client.classify("Fix the failing test in src/parser.py")


async def test_deliveries_count_by_their_result(url: str) -> None:
    labels = {"store": "counter", "kind": "tell"}
    async with opened(url) as counters, running(counters.effects.run):
        counters.refuse = [Refusal(Reason.UNAVAILABLE, "away"), Refusal(Reason.STATE_FORBIDS, "never")]
        await eventually(lambda: _is(counters.store.delivers_effects))
        async with (
            counted("pointsman_deliveries_total", **labels, result="postponed"),
            counted("pointsman_deliveries_total", **labels, result="refused"),
            counted("pointsman_deliveries_total", **labels, result="done"),
        ):
            await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
            await eventually(lambda: _is(counters.heard == ["second"]))


async def test_a_commit_tells_how_many_writes_it_joined_and_where_they_led(url: str) -> None:
    async with opened(url) as counters:
        kind, event = counters.ledger.machine.kind, "added"
        state = {"store": "counter", "kind": kind, "event": event, "state": "counting"}
        before = value("pointsman_commit_batch_size_bucket", store="counter", le="8.0")
        below = value("pointsman_commit_batch_size_bucket", store="counter", le="4.0")
        async with counted("pointsman_transitions_total", 5, **state):
            async with held(counters.store):
                adding = [asyncio.create_task(counters.ledger.submit(a_caller(), Add("c1", 1))) for _ in range(5)]
                await asyncio.sleep(0)
            await asyncio.gather(*adding)
        joined = value("pointsman_commit_batch_size_bucket", store="counter", le="8.0") - before
        assert joined - (value("pointsman_commit_batch_size_bucket", store="counter", le="4.0") - below) == 1


async def test_what_waits_in_the_outbox_shows_its_number_and_age(url: str) -> None:
    clock = FakeClock()
    async with opened(url, clock) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
        clock.advance(seconds=90)
        await counters.store.database.read(lambda connection: measure_store(connection, counters.store))
        assert value("pointsman_outbox_pending", store="counter") == 2
        assert value("pointsman_outbox_lag_seconds", store="counter") == 90


async def test_assignments_that_wait_show_their_number_and_age_and_lost_leases_count(url: str) -> None:
    clock = FakeClock()
    async with orchestrator(url, 10, clock) as store:
        await researching(store, "run_a", 3, research_expected=3)
        clock.advance(seconds=30)
        await store.store.database.read(lambda connection: measure_store(connection, store.store))
        assert value("pointsman_queue_depth", capability="RESEARCH") == 3
        assert value("pointsman_queue_age_seconds", capability="RESEARCH") == 30
        await take(store, "first", 3)
        await store.store.database.read(lambda connection: measure_store(connection, store.store))
        assert value("pointsman_queue_depth", capability="RESEARCH") == 0
        clock.advance(seconds=11)
        async with counted("pointsman_lease_expiries_total", 3, capability="RESEARCH"):
            assert len(await take(store, "second", 3)) == 3


async def test_an_attempt_that_failed_counts_as_a_retry(url: str) -> None:
    async with orchestrator(url) as store:
        await researching(store, "run_a")
        (taken,) = await take(store, "agent")
        failed = commands.FailAssignment(
            "run_a",
            taken.assignment_id,
            taken.epoch,
            "agent",
            "cannot",
            principal="local",
            secret_digest=key_of(taken).secret_digest,
        )
        async with counted("pointsman_retries_total", what="assignment"):
            await store.ledger.submit(caller(), failed)


async def test_barriers_forced_and_returned_stages_count(url: str) -> None:
    clock = FakeClock()
    async with served(url, clock) as client:
        started = await client.start("standard", barrier_timeout=Duration(seconds=60))
        async with counted("pointsman_barrier_waits_total", how="waiting"):
            for stage in ("PLAN", "ARCH", "DEV", "TEST"):
                await client.complete(started.pipeline_id, f"{stage}#1")
        async with (
            counted("pointsman_barrier_waits_total", how="timed_out"),
            counted("pointsman_forced_stages_total", cause="barrier-timeout"),
        ):
            clock.advance(seconds=61)
        quick = await client.start("quick-dev")
        await client.complete(quick.pipeline_id, "DEV#1")
        async with (
            counted("pointsman_retries_total", what="stage"),
            counted("pointsman_barrier_waits_total", how="resolved"),
        ):
            await client.complete(quick.pipeline_id, "REVIEW#1", FAIL)
            await client.complete(quick.pipeline_id, "TEST#1", FAIL)


async def test_a_stage_that_fails_with_nowhere_to_go_back_to_counts_as_forced(url: str) -> None:
    async with served(url) as client:
        nodes = [sp.Node(stage="DEV", next=["REVIEW"]), sp.Node(stage="REVIEW", next=["DOCS"]), sp.Node(stage="DOCS")]
        started = await client.start(dag=sp.Dag(nodes=nodes))
        await client.complete(started.pipeline_id, "DEV#1")
        async with counted("pointsman_forced_stages_total", cause="forced-on"):
            await client.complete(started.pipeline_id, "REVIEW#1", FAIL)


async def test_work_without_evidence_counts_as_a_rejected_claim(tmp_path: Path) -> None:
    before = value("pointsman_rejected_claims_total", cause="rule")
    async with plane(tmp_path) as here:
        await here.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_NO_EVIDENCE)
        await here.asked((await here.submit()).id)
    assert value("pointsman_rejected_claims_total", cause="rule") > before


async def test_dwell_commit_and_call_times_are_taken(url: str) -> None:
    times = {"method": "/pointsman.api.router.v1.RouterService/Classify", "code": "OK"}
    async with router_served(url) as client:
        before = value("pointsman_commit_seconds_count", store="router")
        async with counted("pointsman_rpc_seconds_count", **times):
            await client.classify("Fix the failing test in src/parser.py")
        assert value("pointsman_commit_seconds_count", store="router") > before
    labels = {"store": "orchestrator", "kind": "run", "state": "INTAKE"}
    async with (
        orchestrator(url.replace("store.db", "other.db")) as store,
        counted("pointsman_state_dwell_seconds_count", **labels),
    ):
        await researching(store, "run_a")


async def test_a_timer_that_nobody_fires_shows_how_late_it_is(url: str) -> None:
    clock = FakeClock()
    async with opened(url, clock) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=10))
        await counters.store.database.read(lambda connection: measure_store(connection, counters.store))
        assert value("pointsman_timers_late_seconds", store="counter") == 0
        clock.advance(seconds=25)
        await counters.store.database.read(lambda connection: measure_store(connection, counters.store))
        assert value("pointsman_timers_late_seconds", store="counter") == 15


async def test_a_task_that_is_tried_again_counts_as_a_retry_also_when_it_is_settled_with_others(url: str) -> None:
    async with workflow_served(url) as client:
        await client.run("w1", task("T1"), task("T2"), task("T3"))
        assert await client.take("w1", 3) == ["T1", "T2", "T3"]
        named: dict[str, Any] = {"workflow_id": "w1", "task_id": "T1"}
        await client.stub.FailTask(tasks_pb2.FailTaskRequest(request_id="fail", reason="cannot", **named))
        async with counted("pointsman_retries_total", what="task"):
            await client.stub.RetryTask(tasks_pb2.RetryTaskRequest(request_id="retry", **named))
        rejected = [tasks_pb2.RejectedTask(task_id=name, reason="not good enough", retry=True) for name in ("T2", "T3")]
        settled = tasks_pb2.SettleTasksRequest(request_id="settle", workflow_id="w1", rejected=rejected)
        async with counted("pointsman_retries_total", 2, what="task"):
            await client.stub.SettleTasks(settled)


async def test_spans_of_transitions_count_when_they_have_arrived_and_those_that_have_not_show_their_age(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "RETRY_SECONDS", 0.05)
    clock = FakeClock()
    async with collector() as kept:
        kept.refuse = 1_000_000
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with router_served(url, clock) as client:
            sent = value("pointsman_spans_sent_total", store="router")
            for _ in range(3):
                await client.classify("Fix the failing test in src/parser.py")
            clock.advance(seconds=90)
            await eventually(lambda: _is(value("pointsman_span_lag_seconds", store="router") == 90), 30)
            assert value("pointsman_spans_sent_total", store="router") == sent
            kept.refuse = 0
            await eventually(lambda: _is(value("pointsman_spans_sent_total", store="router") == sent + 3), 30)
            await eventually(lambda: _is(value("pointsman_span_lag_seconds", store="router") == 0), 30)


@pytest.mark.parametrize(("room", "refused", "dropped"), [("1", 0, 5), ("2048", 1_000_000, 6)])
async def test_spans_of_calls_and_commits_that_do_not_fit_or_are_not_taken_count_as_dropped(
    url: str, monkeypatch: pytest.MonkeyPatch, room: str, refused: int, dropped: int
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", room)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    async with collector() as kept:
        kept.refuse = refused
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with counted("pointsman_spans_dropped_total", dropped), router_served(url) as client:
            for _ in range(3):
                await client.classify("Fix the failing test in src/parser.py")


def test_every_number_has_a_name_a_unit_and_one_sentence() -> None:
    for metric in DECLARED:
        (family,) = metric.describe()
        assert family.name.startswith("pointsman_"), family.name
        assert family.documentation.endswith("."), family.name
        assert metrics.UNITS[metric], family.name
        assert family.name.endswith("_seconds") == (metrics.UNITS[metric] == "seconds"), family.name


def test_every_number_of_a_metrics_module_is_declared() -> None:
    made = {one for module in MODULES for one in vars(module).values() if isinstance(one, MetricWrapperBase)}
    assert made == set(metrics.UNITS)


async def _is(condition: bool) -> bool:
    return condition
