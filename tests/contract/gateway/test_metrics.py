"""The gateway's numbers: what it answered, what it holds open, and where Prometheus reads it."""

import asyncio
import http.client
import os
import signal
import sys
from pathlib import Path

from prometheus_client import REGISTRY

from tests.contract.gateway.gateways import ORCHESTRATOR, gateway
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.helpers.ports import free_port
from tests.scenarios.planes import NOBODY
from tests.unit.deploy.edge import listens


def value(name: str, /, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_every_answer_counts_by_its_status(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        before = {status: value("pointsman_http_requests_total", status=status) for status in ("200", "403", "404")}
        await web.get("/healthz")
        await web.get("/healthz", host="evil.example")
        await web.get(f"{ORCHESTRATOR}/GetRun?run_id=nobody")
        for status, count in before.items():
            assert value("pointsman_http_requests_total", status=status) == count + 1, status


async def test_an_event_stream_counts_while_it_is_open(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        run = await web.plane.submit()
        watcher = http.client.HTTPConnection("127.0.0.1", web.port, timeout=scaled(30))
        before = value("pointsman_event_streams")

        async def held(count: float) -> bool:
            return value("pointsman_event_streams") == before + count

        try:
            await asyncio.to_thread(watcher.request, "GET", f"{ORCHESTRATOR}/WatchRun?run_id={run.id}")
            await eventually(lambda: held(1))
        finally:
            watcher.close()
        await eventually(lambda: held(0), 30)


async def test_a_gateway_that_runs_alone_answers_prometheus_where_it_was_told() -> None:
    port = free_port()
    told = {"POINTSMAN_GATEWAY_PORT": "0", "POINTSMAN_GATEWAY_METRICS_PORT": str(port)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pointsman.cli", "serve", "gateway", env={**os.environ, **told}
    )

    async def answers() -> bool:
        assert process.returncode is None
        return listens(port)

    try:
        await eventually(answers, 30)
        scrape = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(10))
        await asyncio.to_thread(scrape.request, "GET", "/metrics")
        text = (await asyncio.to_thread(scrape.getresponse)).read().decode()
        assert "# TYPE pointsman_http_requests_total counter" in text
        assert "pointsman_event_streams 0.0" in text
        scrape.close()
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
