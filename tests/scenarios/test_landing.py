"""From accepted to merged with real processes: a run, `deliver`, kill -9 of the integrator, and the audit."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.client import connect
from pointsman.landing.steps import ARMED_BY, Step
from pointsman.services.chassis.telemetry.context import transition_span_id
from pointsman.worker.git import git, text
from tests.helpers.eventually import eventually
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled
from tests.scenarios.commands import finished, open_gate, patient, running

pytestmark = pytest.mark.timeout(240)
DELIVER = ("deliver", "last", "--json")


async def test_a_run_lands_on_a_remote_by_its_own_proof_and_survives_kill_9_between_push_and_report(
    tmp_path: Path,
) -> None:
    repository = await example_repository(tmp_path)
    remote = tmp_path / "remote.git"
    await git(tmp_path, "clone", "-q", "--bare", str(repository), str(remote))
    await git(repository, "remote", "add", "origin", str(remote))
    environment = {"POINTSMAN_DATA": str(tmp_path / "data"), "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(3))}
    gate = tmp_path / "gate"
    command = patient(gate)
    open_gate(gate)
    with ExitStack() as stack:
        plane = stack.enter_context(running("up", "--port", "0", **environment))
        plane.line_with(" up at ")
        wanted = ("run", "write a greeting in hello/__init__.py", "--action", "--solo", "--repo", str(repository))
        code, output = finished(*wanted, "--command", command, **environment)
        assert code == 0, output
        before = await text(remote, "rev-parse", "main")
        terms = ("--repo", str(repository), "--onto", "main", "--push", "origin")
        code, output = finished(*DELIVER, *terms, **environment, **{ARMED_BY: Step.PUSHED})
        assert code == -9, output
        pushed = await text(remote, "rev-parse", "main")
        assert pushed != before, "it died after the push"
        worker = ("queue", "work", "--repo", str(repository), "--push", "origin")
        stack.enter_context(running(*worker, **environment)).line_with("landing as")
        async with connect("", data=tmp_path / "data") as client:

            async def landed() -> pb.Entry | None:
                (entry,) = [one async for one in client.landing.all()]
                return entry if entry.state == pb.ENTRY_STATE_LANDED else None

            entry = await eventually(landed, 60)
            assert entry is not None
            events = [row.event async for row in client.landing.watch(entry.id)]
        assert events == ["enqueued", "taken", "proven", "taken", "landed"]
        assert (entry.landed_commit, entry.candidate.grade) == (pushed, "PROVEN")
        assert await text(remote, "rev-parse", "main") == pushed
        traced(finished("trace", entry.run_id, **environment)[1])
        code, output = finished("trace", entry.run_id, "--json", **environment)
        spans = [span for one in json.loads(output)["resourceSpans"] for span in one["scopeSpans"][0]["spans"]]
        trace_id = spans[0]["traceId"]
        ids = {transition_span_id(trace_id, entry.id, seq) for seq in range(1, len(events) + 1)}
        assert ids <= {span["spanId"] for span in spans if span["traceId"] == trace_id}, "each step of the entry"
        message = await text(remote, "log", "-1", "--format=%B", "main")
        assert f"Pointsman-Run: {entry.run_id}" in message
    code, output = finished("audit", "--all", **environment)
    assert code == 0, output


def traced(shown: str) -> None:
    """The way into the branch is a part of the run's trace: waiting, the proof on the tip, and the push."""
    lines = shown.splitlines()
    (begin,) = [number for number, line in enumerate(lines) if " entry entry_" in line]
    assert lines[begin].endswith("→ LANDED")
    ways = [(line.split("|")[0].split()[-1], line.rpartition("→ ")[2]) for line in lines[begin + 1 : begin + 4]]
    assert ways == [("QUEUED", "taken"), ("PROVING", "proven"), ("LANDING", "landed")]
    assert "queue " in next(line for line in lines if line.startswith("waits "))
