"""Room for artifacts: what is on its way counts as it arrives, what is stored has a quota for each project and principal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.services.chassis.core.caller import Caller, Role
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.servicer import ArtifactServicer
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.artifacts import Quota
from tests.contract.orchestrator.orchestrators import caller, orchestrator
from tests.contract.orchestrator.test_service import reference, send

LARGEST = 1000
QUOTA = 1500


async def put(servicer: ArtifactServicer, body: bytes, project: str = "local") -> None:
    await servicer.Put(send(body, reference(body)), caller(project=project))


class Upload:
    """An upload that says what it will be, sends some of it, and then nothing."""

    def __init__(self, servicer: ArtifactServicer, body: bytes, sent: int, project: str) -> None:
        self._body, self._sent = body, sent
        self._stands = asyncio.Event()
        self._goes_on = asyncio.Event()
        self._task = asyncio.create_task(servicer.Put(self._parts(), caller(project=project)))

    async def stands(self) -> None:
        await self._stands.wait()

    async def finish(self) -> None:
        self._goes_on.set()
        await self._task

    async def _parts(self) -> AsyncIterator[artifact.PutRequest]:
        yield artifact.PutRequest(start=artifact.PutStart(artifact=reference(self._body)))
        yield artifact.PutRequest(chunk=self._body[: self._sent])
        self._stands.set()
        await self._goes_on.wait()
        yield artifact.PutRequest(chunk=self._body[self._sent :])


async def test_an_idle_upload_takes_no_more_room_than_has_arrived(tmp_path: Path) -> None:
    async with orchestrator(f"sqlite:///{tmp_path}/o.db") as store:
        servicer = ArtifactServicer(store, LARGEST)
        idle = Upload(servicer, b"i" * LARGEST, 100, "local")
        await idle.stands()
        await put(servicer, b"a" * 900)
        await put(servicer, b"b" * LARGEST, "other")
        with pytest.raises(Refusal) as caught:
            await put(servicer, b"c" * 901)
        assert caught.value.reason is Reason.OVERLOADED
        await idle.finish()


async def test_what_one_project_sends_leaves_room_for_another(tmp_path: Path) -> None:
    async with orchestrator(f"sqlite:///{tmp_path}/o.db") as store:
        servicer = ArtifactServicer(store, LARGEST)
        idle = Upload(servicer, b"i" * LARGEST, LARGEST - 1, "local")
        await idle.stands()
        with pytest.raises(Refusal):
            await put(servicer, b"a" * 900)
        await put(servicer, b"b" * LARGEST, "other")
        await idle.finish()
        await put(servicer, b"a" * LARGEST)


async def test_a_project_stores_no_more_than_its_quota(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        servicer = ArtifactServicer(store, LARGEST, Quota(QUOTA))
        await put(servicer, b"a" * LARGEST)
        with pytest.raises(Refusal) as caught:
            await put(servicer, b"b" * 501)
        assert (caught.value.reason, caught.value.metadata["limit"]) == (Reason.OVERLOADED, str(QUOTA))
        for way_out in ("POINTSMAN_ORCHESTRATOR_MAX_PROJECT_ARTIFACT_BYTES", "POINTSMAN_ORCHESTRATOR_RETENTION_DAYS"):
            assert way_out in caught.value.message
        await put(servicer, b"a" * LARGEST)
        await put(servicer, b"b" * 501, "other")
        await put(servicer, b"c" * 500)


async def test_a_principal_stores_no_more_than_its_quota_and_harms_no_other(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        servicer = ArtifactServicer(store, LARGEST, Quota(10 * QUOTA, QUOTA))

        async def put_as(principal: str, body: bytes, project: str = "local") -> None:
            who = Caller(principal, project, frozenset({Role.AGENT}))
            await servicer.Put(send(body, reference(body)), who)

        await put_as("alice", b"a" * LARGEST)
        with pytest.raises(Refusal) as caught:
            await put_as("alice", b"b" * 501)
        assert (caught.value.reason, caught.value.metadata["limit"]) == (Reason.OVERLOADED, str(QUOTA))
        assert caught.value.retry_after_seconds
        for named in ("alice in project local", "POINTSMAN_ORCHESTRATOR_MAX_PRINCIPAL_ARTIFACT_BYTES"):
            assert named in caught.value.message
        await put_as("alice", b"a" * LARGEST)
        await put_as("alice", b"b" * 501, "other")
        await put_as("bob", b"b" * 501)
        await put_as("alice", b"c" * 500)
        with pytest.raises(Refusal):
            await put_as("alice", b"d")


async def test_what_retention_deletes_gives_room_back(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        servicer = ArtifactServicer(store, LARGEST, Quota(QUOTA))
        await put(servicer, b"a" * LARGEST)
        with pytest.raises(Refusal):
            await put(servicer, b"b" * LARGEST)
        later_us = to_us(store.now) + 1_000_000
        assert await store.store.write(lambda c: store.artifacts.forget_orphans(c, later_us)) == 1
        await put(servicer, b"b" * LARGEST)


async def test_uploads_at_once_pass_the_quota_together_never(database_url: str) -> None:
    replicas = 1 if database_url.startswith("sqlite") else 3
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(orchestrator(database_url)) for _ in range(replicas)]
        servicers = [ArtifactServicer(stores[number % replicas], 9 * 600, Quota(QUOTA)) for number in range(9)]
        bodies = [bytes([number]) * 600 for number in range(9)]
        puts = [put(servicer, body) for servicer, body in zip(servicers, bodies, strict=True)]
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        stored = [body for body in bodies if await _is_stored(stores[0], body)]
        refused = [one for one in outcomes if isinstance(one, Refusal)]
        assert (len(stored), len(refused)) == (2, 7), outcomes


async def _is_stored(store: OrchestratorStore, body: bytes) -> bool:
    return await store.artifacts.chunk("local", reference(body).sha256, 0) is not None


async def test_a_body_for_a_run_that_is_not_there_is_refused(database_url: str) -> None:
    async def parts(body: bytes) -> AsyncIterator[artifact.PutRequest]:
        yield artifact.PutRequest(start=artifact.PutStart(artifact=reference(body), run_id="run_of_nobody"))
        yield artifact.PutRequest(chunk=body)

    async with orchestrator(database_url) as store:
        servicer = ArtifactServicer(store, LARGEST)
        with pytest.raises(Refusal) as caught:
            await servicer.Put(parts(b"for ever"), caller())
        assert caught.value.reason is Reason.NOT_FOUND


AGENT = frozenset({Role.AGENT, Role.VIEWER})
WHO = {
    "operator": Caller("operator", "local", AGENT | {Role.OPERATOR}),
    "verifier": Caller("verifier/box", "local", AGENT, capabilities=frozenset({"verify"})),
    "coder": Caller("coder/box", "local", AGENT, capabilities=frozenset({"code", "review", "plan"})),
    "viewer": Caller("viewer", "local", frozenset({Role.VIEWER})),
}


def withheld(body: bytes) -> AsyncIterator[artifact.PutRequest]:
    async def parts() -> AsyncIterator[artifact.PutRequest]:
        start = artifact.PutStart(artifact=reference(body), artifact_class=artifact.ARTIFACT_CLASS_HELD_OUT)
        yield artifact.PutRequest(start=start)
        yield artifact.PutRequest(chunk=body)

    return parts()


async def read(servicer: ArtifactServicer, body: bytes, who: Caller) -> bytes:
    request = artifact.GetRequest(sha256=reference(body).sha256)
    return b"".join([part.chunk async for part in servicer.Get(request, who)])


async def test_held_out_checks_are_put_and_read_by_operators_and_verifiers_alone(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        servicer = ArtifactServicer(store, LARGEST)
        for name in ("operator", "verifier"):
            body = f"checks of the {name}".encode()
            await servicer.Put(withheld(body), WHO[name])
            assert {await read(servicer, body, WHO[one]) for one in ("operator", "verifier")} == {body}
            for other in ("coder", "viewer"):
                with pytest.raises(Refusal) as caught:
                    await read(servicer, body, WHO[other])
                assert caught.value.reason is Reason.PERMISSION_DENIED
        with pytest.raises(Refusal) as caught:
            await servicer.Put(withheld(b"mine"), WHO["coder"])
        assert caught.value.reason is Reason.PERMISSION_DENIED


async def test_a_body_that_was_held_out_once_is_not_published_by_putting_it_again(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        servicer = ArtifactServicer(store, LARGEST)
        await servicer.Put(withheld(b"checks"), WHO["operator"])
        await servicer.Put(send(b"checks", reference(b"checks")), WHO["coder"])
        with pytest.raises(Refusal):
            await read(servicer, b"checks", WHO["coder"])
        await servicer.Put(send(b"open", reference(b"open")), WHO["coder"])
        await servicer.Put(withheld(b"open"), WHO["operator"])
        with pytest.raises(Refusal):
            await read(servicer, b"open", WHO["coder"])
