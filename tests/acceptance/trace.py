"""`make trace-acceptance`: a real trace back end (Phoenix) on loopback, asked over its own API for what has arrived.

For each way in which a run can be hard on its trace (a service killed in its middle, all of them killed, two days of
waiting over three restarts; over OTLP/gRPC and over OTLP/HTTP): as many spans as the journals have transitions, under
the same ids, with one root and a whole tree. Over OTLP/HTTP the GenAI conventions are opted in to: the run is the one
workflow, and an agent's plan and tool calls stand below its work.
"""

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointsman._shared.otlp.span_record import now_ns
from pointsman.api.orchestrator.v1 import agent_pb2, assignment_pb2
from pointsman.usage.output import ToolCall
from pointsman.worker.spans import DONE, WorkSpans
from tests.helpers.eventually import eventually
from tests.helpers.traces import Arrived, differences, roots_of, transitions_of
from tests.scenarios.tracing import Traced, killed_process, killed_services, two_days_of_waiting

START_SECONDS = 180.0
ARRIVE_SECONDS = 120.0
PAGE = 1000


@dataclass(frozen=True)
class Phoenix:
    """A running back end."""

    http_port: int
    grpc_port: int

    def variables(self, protocol: str) -> dict[str, str]:
        """What tells a service to send its spans here."""
        port = self.grpc_port if protocol == "grpc" else self.http_port
        genai = "" if protocol == "grpc" else "gen_ai_latest_experimental"
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_SEMCONV_STABILITY_OPT_IN": genai,
        }

    def spans(self, trace_id: str) -> list[Arrived]:
        """What it has of a trace."""
        found: list[Arrived] = []
        cursor = ""
        while True:
            page = self._get({"trace_id": trace_id, "limit": str(PAGE), **({"cursor": cursor} if cursor else {})})
            found += [_arrived(span) for span in page["data"]]
            cursor = page.get("next_cursor") or ""
            if not cursor:
                return found

    def _get(self, query: dict[str, str]) -> Any:
        path = f"/v1/projects/default/spans/otlpv1?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return {"data": []}
            raise

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _arrived(span: dict[str, Any]) -> Arrived:
    values = {
        pair["key"]: next((str(value) for value in pair["value"].values() if value is not None), "")
        for pair in span.get("attributes", ())
    }
    return Arrived(span["span_id"], span.get("parent_span_id") or "", span["name"], values)


@contextmanager
def phoenix(environment: Path, folder: Path) -> Iterator[Phoenix]:
    """Phoenix from its own environment, listening on loopback only, gone at the end of the block."""
    ports = [_free_port(), _free_port()]
    variables = {
        **os.environ,
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(ports[0]),
        "PHOENIX_GRPC_PORT": str(ports[1]),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with (
        (folder / "phoenix.log").open("w") as log,
        subprocess.Popen([environment / "bin" / "phoenix", "serve"], env=variables, stdout=log, stderr=log) as process,
    ):
        try:
            yield Phoenix(*ports)
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def one_process(data: Path, variables: dict[str, str]) -> AsyncIterator[Sequence[Traced]]:
    """All services in a process that is killed."""
    async with killed_process(data, **variables) as traced:
        yield traced


@asynccontextmanager
async def four_processes(data: Path, variables: dict[str, str]) -> AsyncIterator[Sequence[Traced]]:
    """Each service in a process of its own, each killed in the middle of a run."""
    async with killed_services(data, **variables) as traced:
        yield traced


@asynccontextmanager
async def two_days(data: Path, variables: dict[str, str]) -> AsyncIterator[Sequence[Traced]]:
    """A person who answers after two days and three restarts."""
    os.environ.update(variables)
    try:
        async with two_days_of_waiting(data) as traced:
            yield [traced]
    finally:
        for name in variables:
            del os.environ[name]


SCENARIOS = (("four_processes", four_processes), ("one_process", one_process), ("two_days", two_days))


async def prove(back_end: Phoenix, folder: Path) -> int:
    """Run every scenario over both protocols; how many traces were proved."""
    await eventually(lambda: asyncio.to_thread(back_end.is_up), START_SECONDS)
    proved = 0
    for protocol in ("grpc", "http/protobuf"):
        for name, scenario in SCENARIOS:
            data = folder / f"{name}-{protocol[:4]}"
            async with scenario(data, back_end.variables(protocol)) as all_runs:
                for traced in all_runs:
                    await _proved(back_end, data, traced, [] if protocol == "grpc" else ["invoke_workflow run"])
                    spans = back_end.spans(traced.trace_id)
                    row: dict[str, str | int] = {
                        "scenario": name,
                        "protocol": protocol,
                        "run": traced.run_id,
                        "state": traced.state,
                    }
                    row |= {"moves_since_kill": traced.moves_since} if name == "four_processes" else {}
                    row |= {"transitions": len(transitions_of(data, traced.run_id, traced.trace_id))}
                    print(json.dumps({**row, "spans": len(spans), "roots": len(roots_of(spans))}), flush=True)
                    proved += 1
    await _genai(back_end)
    return proved


async def _genai(back_end: Phoenix) -> None:
    """An agent's plan and its tool calls, below its work."""
    os.environ.update(back_end.variables("http/protobuf"))
    trace_id = secrets.token_hex(16)
    assignment = assignment_pb2.Assignment(
        id="run_1.a1",
        run_id="run_1",
        purpose=assignment_pb2.PURPOSE_PLAN,
        traceparent=f"00-{trace_id}-{secrets.token_hex(8)}-01",
    )
    lease, spans = agent_pb2.Lease(assignment=assignment, epoch=1), WorkSpans()
    async with spans.open():
        begin = now_ns()
        spans.record(lease, ("box-planner", "planner"), begin, DONE, {"gen_ai.usage.input_tokens": 100})
        spans.record_tools(lease, [ToolCall("c1", "read", begin, now_ns())])

    async def arrived() -> bool:
        found = {span.name: span for span in await asyncio.to_thread(back_end.spans, trace_id)}
        work = found.pop("invoke_agent planner", None)
        below = {name for name, span in found.items() if work is not None and span.parent_id == work.span_id}
        return below == {"plan", "execute_tool read"}

    await eventually(arrived, ARRIVE_SECONDS)
    print(json.dumps({"scenario": "genai", "spans": 3}), flush=True)


async def _proved(back_end: Phoenix, data: Path, traced: Traced, expected: Sequence[str]) -> None:
    wrong: list[str] = []

    async def whole() -> bool:
        spans = await asyncio.to_thread(back_end.spans, traced.trace_id)
        ids = [span.span_id for span in spans]
        wrong[:] = differences(spans, data, traced.run_id, traced.trace_id)
        wrong.extend(["a span is there twice"] if len(set(ids)) != len(ids) else [])
        workflows = [span.name for span in spans if span.attributes.get("gen_ai.operation.name") == "invoke_workflow"]
        wrong.extend([] if workflows == expected else [f"workflows: {workflows}"])
        return not wrong and traced.state == "COMPLETE"

    try:
        await eventually(whole, ARRIVE_SECONDS)
    except AssertionError:
        sys.exit(f"{traced}: {wrong}")


def main(environment: str) -> None:
    """Start the back end, run the scenarios, end with 1 if a trace is not whole."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "phoenix").mkdir()
        with phoenix(Path(environment).resolve(), folder / "phoenix") as back_end:
            proved = asyncio.run(prove(back_end, folder))
    print(json.dumps({"traces_proved": proved}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
