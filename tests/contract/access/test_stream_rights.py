"""A stream goes on only as long as its caller's right: a token that ran out or was taken away ends it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from sqlalchemy import MetaData

from pointsman.api.orchestrator.v1 import agent_pb2, landing_pb2
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1.landing_pb2_grpc import LandingServiceStub
from pointsman.api.pipeline.v1 import pipeline_pb2, requests_pb2
from pointsman.api.workflow.v1 import plans_pb2, reading_pb2
from pointsman.client import Client
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.config import ClientSettings, ServerSettings
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.rpc.client import channel_credentials
from pointsman.services.chassis.rpc.status import refusal_from
from pointsman.services.chassis.runtime.service import start
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.machine import MACHINE
from pointsman.services.orchestrator.domain.landing.model import Terms, Work
from pointsman.services.orchestrator.store.tables import entry_index
from tests.contract.access.guarded import Guarded, guarded
from tests.contract.gateway.gateways import ORCHESTRATOR, gateway
from tests.contract.wire_samples import files
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled, within
from tests.scenarios.planes import NOBODY, Plane, builder, clients

LIFE_SECONDS = 4
END_SECONDS = 90.0
"""Longer than a token lives on the busiest machine."""


def soon() -> int:
    """When a token runs out that is good for a few calls."""
    return int(SystemClock().now().timestamp() + scaled(LIFE_SECONDS))


async def read_on(call: Any) -> Reason:
    """Why a stream ends, which it has to by itself."""
    async with within(END_SECONDS):
        try:
            while await call.read() is not grpc.aio.EOF:
                pass
        except grpc.aio.AioRpcError as error:
            return refusal_from(error).reason
    raise AssertionError("it ended without a reason")


async def watching(here: Plane, metadata: Any = ()) -> Any:
    """A stream of changes that has shown its first one."""
    await here.submit()
    call = here.runs.WatchChanges(pb.WatchChangesRequest(), metadata=metadata)
    assert await call.read() is not grpc.aio.EOF
    return call


async def bare(there: Guarded) -> Plane:
    """Clients that show nothing by themselves."""
    credentials = grpc.ssl_channel_credentials(there.authority.certificate.read_bytes())
    channel = grpc.aio.secure_channel(there.address, credentials)
    return clients(await there.channels.enter_async_context(channel))


def bearer(there: Guarded, *roles: str) -> tuple[tuple[str, str], ...]:
    claims = {"sub": "ann", "roles": list(roles), "projects": ["local"], "exp": soon()}
    return (("authorization", f"Bearer {there.authority.token(claims)}"),)


async def test_a_stream_ends_when_its_token_runs_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        await (await there.as_principal("olga", "operator")).submit()
        call = (await bare(there)).runs.WatchChanges(pb.WatchChangesRequest(), metadata=bearer(there, "viewer"))
        assert await call.read() is not grpc.aio.EOF
        assert await read_on(call) is Reason.UNAUTHENTICATED


async def enqueue_an_entry(there: Guarded) -> None:
    """An entry of a merge queue, whose run nobody has to finish first."""
    store = next(one.store for one in there.services if one.name == "orchestrator")
    assert store is not None
    wanted = Terms("repository", "main", title="a task")
    work = Work("run_1", "b" * 40, "c" * 40, "d" * 64, 1)
    command = commands.Enqueue("entry_1", wanted.queue_id("local"), wanted, work)
    await Ledger(store, MACHINE).submit(Caller("olga", "local", request_id="entry"), command)
    row = {
        "entity_id": "entry_1", "project": "local", "queue_id": wanted.queue_id("local"), "repository_id": "repository",
        "run_id": "run_1", "status": "QUEUED", "priority": 1, "created_at_us": 1,
    }  # fmt: skip
    await store.write(lambda connection: connection.execute(entry_index(MetaData()).insert(), row))


async def test_every_stream_that_goes_on_by_itself_ends_when_its_token_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        operator = await there.as_principal("olga", "operator")
        run = await operator.submit()
        started = pipeline_pb2.StartPipelineRequest(request_id="p", pipeline_id="p1", template="quick-dev")
        await operator.pipeline.StartPipeline(started)
        await operator.workflow.UpsertPlan(plans_pb2.UpsertPlanRequest(request_id="w", workflow_id="w1"))
        await enqueue_an_entry(there)
        here = await bare(there)
        landing: Any = LandingServiceStub(here.channel)
        open_streams: dict[str, Any] = {
            "WatchRun": lambda **token: here.runs.WatchRun(pb.WatchRunRequest(run_id=run.id), **token),
            "WatchOutput": lambda **token: here.agents.WatchOutput(
                agent_pb2.WatchOutputRequest(run_id=run.id, follow=True), **token
            ),
            "WatchEntry": lambda **token: landing.WatchEntry(
                landing_pb2.WatchEntryRequest(entry_id="entry_1"), **token
            ),
            "WatchPipeline": lambda **token: here.pipeline.WatchPipeline(
                requests_pb2.WatchPipelineRequest(pipeline_id="p1"), **token
            ),
            "WatchWorkflow": lambda **token: here.workflow.WatchWorkflow(
                reading_pb2.WatchWorkflowRequest(workflow_id="w1"), **token
            ),
            "changes of runs": lambda **token: here.runs.WatchChanges(pb.WatchChangesRequest(), **token),
            "changes of pipelines": lambda **token: here.pipeline.WatchChanges(
                requests_pb2.WatchChangesRequest(), **token
            ),
            "changes of workflows": lambda **token: here.workflow.WatchChanges(
                reading_pb2.WatchChangesRequest(), **token
            ),
        }
        token = bearer(there, "viewer")
        calls = {name: stream(metadata=token) for name, stream in open_streams.items()}
        ends = await asyncio.gather(*(read_on(call) for call in calls.values()))
        assert dict(zip(calls, ends, strict=True)) == dict.fromkeys(calls, Reason.UNAUTHENTICATED)


def test_the_streams_that_are_tried_are_all_there_are() -> None:
    streams = {
        method.name
        for file in files()
        for service in file.services_by_name.values()
        for method in service.methods
        if method.server_streaming
    }
    ends_by_itself = {"Get", "ExportLog"}
    tried = {"WatchRun", "WatchOutput", "WatchEntry", "WatchPipeline", "WatchWorkflow", "WatchChanges"}
    assert streams == tried | ends_by_itself


async def test_a_stream_ends_when_the_key_that_signed_its_token_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        call = await watching(await there.as_principal("olga", "operator"))
        (tmp_path / "other").mkdir()
        there.authority.public_key.write_bytes(Authority(tmp_path / "other").public_key.read_bytes())
        assert await read_on(call) is Reason.UNAUTHENTICATED


async def test_a_client_whose_token_was_renewed_in_its_file_goes_on_after_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        olga = await there.as_principal("olga", "operator")
        run = await olga.submit()
        viewer = await there.as_principal("ann", "viewer")
        claims = {"sub": "ann", "roles": ["viewer"], "projects": ["local"]}
        file, lasting = there.folder / "ann.token", there.authority.token(claims)
        file.write_text(there.authority.token({**claims, "exp": soon()}))
        seen: list[int] = []
        async with within(END_SECONDS):
            async for one in Client(viewer.channel).runs.watch(run.id):
                if not seen:
                    file.write_text(lasting)
                    ended = asyncio.create_task(_cancel_after(olga, run.id))
                seen.append(one.seq)
        await ended
        assert seen == list(range(1, len(seen) + 1))


async def _cancel_after(here: Plane, run_id: str) -> None:
    """End a run when every token that runs out soon has done so."""
    over = soon() + 3

    async def is_over() -> bool:
        return SystemClock().now().timestamp() > over

    await eventually(is_over, END_SECONDS)
    await here.runs.CancelRun(pb.CancelRunRequest(request_id=here.request_id(), run_id=run_id, reason="enough"))


@asynccontextmanager
async def by_certificate(folder: Path, access: Path) -> AsyncIterator[Plane]:
    """The control plane for callers with a certificate, and clients that show one for `olga`."""
    authority = Authority(folder)
    server, olga = authority.issue("server"), authority.issue("olga")
    settings = ServerSettings(
        port=0, drain_seconds=0.2, tls_certificate=server.certificate, tls_key=server.key,
        client_authority=authority.certificate, access=access,
    )  # fmt: skip
    shown = ClientSettings(authority=authority.certificate, certificate=olga.certificate, key=olga.key)
    with pytest.MonkeyPatch.context() as environment:
        for name in ("authority", "certificate", "key"):
            environment.setenv(f"POINTSMAN_CLIENT_{name.upper()}", str(getattr(shown, name)))
        running = await start(builder(folder / "data", NOBODY, OrchestratorSettings()), settings)
    credentials = channel_credentials(shown)
    assert credentials is not None
    try:
        async with grpc.aio.secure_channel(running.address, credentials) as channel:
            yield clients(channel)
    finally:
        await running.stop()


def granted(path: Path, *names: str, projects: tuple[str, ...] = ("*",)) -> Path:
    """An access file; replaced as a whole, as one is that others read."""
    principals = [{"name": name, "roles": ["service"], "projects": list(projects)} for name in names]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"principals": principals}))
    return fresh.replace(path)


@pytest.mark.parametrize(
    ("names", "projects"), [(("olga",), ("other",)), (("somebody",), ("*",))], ids=["another project", "not named"]
)
async def test_a_stream_ends_when_the_access_file_takes_its_right_away(
    tmp_path: Path, names: tuple[str, ...], projects: tuple[str, ...]
) -> None:
    (tmp_path / "data").mkdir()
    access = granted(tmp_path / "access.json", "olga")
    async with by_certificate(tmp_path, access) as here:
        call = await watching(here)
        granted(access, "olga", "somebody")
        await here.submit()
        assert await call.read() is not grpc.aio.EOF, "a change that leaves its right leaves the stream"
        granted(access, *names, projects=projects)
        assert await read_on(call) is Reason.PERMISSION_DENIED


async def test_an_event_stream_of_the_gateway_ends_when_its_token_runs_out(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with gateway(tmp_path / "data", NOBODY, token_keys=authority.public_key, keep_alive_seconds=0.2) as web:
        await web.plane.submit()
        claims = {"sub": "ann", "roles": ["viewer"], "projects": ["local"], "exp": soon()}
        header = {"authorization": f"Bearer {authority.token(claims)}"}
        *seen, last = await web.events(f"{ORCHESTRATOR}/WatchChanges", 10_000, **header)
        assert seen
        assert (last["event"], json.loads(last["data"])["error"]["reason"]) == ("refusal", "UNAUTHENTICATED")
