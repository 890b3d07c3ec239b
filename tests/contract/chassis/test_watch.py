"""Watching a journal: without gap or repeat across reconnects, restarts and replicas, at the reader's pace."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc
import pytest
from sqlalchemy import Connection, make_url, text

from pointsman.services.chassis.engine.journal import PAGE_ROWS
from pointsman.services.chassis.rpc import server
from pointsman.services.chassis.storage import notifications
from pointsman.services.chassis.storage.features import features_of
from pointsman.services.chassis.storage.notifications import ANY, MAX_PAYLOAD_BYTES, Listener, channel, pack, unpack
from tests.helpers.counter import Add, counter_pb2, counter_pb2_grpc
from tests.helpers.counter_server import Served, an_add, failure_of, serving
from tests.helpers.counters import a_caller, in_one_batch, opened, rows_of
from tests.helpers.eventually import eventually
from tests.helpers.limits import within

FAT_ROWS = 50
SMALL_WINDOW = [("grpc.http2.bdp_probe", 0)]
"""A reader takes in no more than it has read; otherwise it makes room ahead, and the more the slower the machine."""


async def test_a_watcher_that_comes_back_has_neither_gap_nor_repeat(database_url: str) -> None:
    seen: list[int] = []
    async with serving(database_url) as served:
        await served.stub.Add(an_add("first"))
        adding = asyncio.create_task(_add(served, 59))
        while len(seen) < 60:
            seen += await _seqs(served, after=seen[-1] if seen else 0, count=min(7, 60 - len(seen)))
        await adding
    assert seen == list(range(1, 61))


async def test_a_watcher_goes_on_after_a_restart_of_the_server(database_url: str) -> None:
    async with serving(database_url) as served:
        await _add(served, 5)
        before = await _seqs(served, after=0, count=5)
    async with serving(database_url) as served:
        await served.stub.Add(an_add("later"))
        assert before + await _seqs(served, after=before[-1], count=1) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("most", [1, 7, PAGE_ROWS])
async def test_a_journal_longer_than_a_page_is_followed_whole(database_url: str, most: int) -> None:
    async with opened(database_url) as counters:
        count = PAGE_ROWS * 2 + 1
        await in_one_batch(counters.store, [counters.ledger.submit(a_caller(), Add("c1", 1)) for _ in range(count)])
        seqs: list[int] = []
        async for rows in counters.journal.tail("local", ("counter", "c1"), 0, most):
            assert 1 <= len(rows) <= most
            seqs += [row.seq for row in rows]
            if len(seqs) == count:
                break
        assert seqs == list(range(1, count + 1))


async def test_a_commit_on_one_replica_is_seen_on_another_within_a_second(database_url: str) -> None:
    if not database_url.startswith("postgresql"):
        return
    async with serving(database_url) as one, serving(database_url) as two:
        await one.stub.Add(an_add("r0"))
        stream = two.stub.Watch(counter_pb2.WatchRequest(counter_id="c1"))
        assert (await stream.read()).seq == 1
        for number in range(1, 6):
            await one.stub.Add(an_add(f"r{number}"))
            async with within(1):
                assert (await stream.read()).seq == number + 1
        stream.cancel()


async def test_a_burst_on_one_replica_is_a_few_pieces_of_news_to_another(database_url: str) -> None:
    if not features_of(make_url(database_url)).listen:
        return
    async with serving(database_url) as one, opened(database_url, listens=True) as two:
        heard = _overheard(two.store.hub)
        for number in range(40):
            await one.stub.Add(an_add(f"r{number}", counter_id=f"c{number}"))
        await eventually(lambda: _true({f"c{number}" for number in range(40)} <= set(heard)))
        assert len(await rows_of(two, "journal")) == 40
        assert one.store.notify_batcher is not None
        assert not one.store.notify_batcher.has_pending


async def test_what_a_replica_has_said_itself_is_no_news_to_it(database_url: str) -> None:
    if not features_of(make_url(database_url)).listen:
        return
    async with opened(database_url, listens=True) as counters:
        heard = _overheard(counters.store.hub)
        await counters.ledger.submit(a_caller(), Add("c1", 1))
        run = text(f"SELECT pg_notify('{channel(counters.store.database)}', '[\"other\"]')")

        def notify(connection: Connection) -> None:
            connection.execute(run)
            connection.commit()

        await counters.store.database.read(notify)
        await eventually(lambda: _true("other" in heard))
        assert heard.count("c1") == 1


async def test_200_watchers_of_one_entity_see_everything_and_leave_nothing_behind(database_url: str) -> None:
    async with serving(database_url) as served:
        await served.stub.Add(an_add("r0"))
        watching = [asyncio.create_task(_seqs(served, after=0, count=11)) for _ in range(200)]
        await _add(served, 10)
        for seqs in await asyncio.gather(*watching):
            assert seqs == list(range(1, 12))
        hub = served.store.hub
        await eventually(lambda: _true("c1" not in hub._waiting))


async def test_a_missing_counter_and_one_of_another_project_cannot_be_watched(database_url: str) -> None:
    async with serving(database_url) as served:
        await served.stub.Add(an_add(), metadata=(("pointsman-project", "theirs"),))
        failures = [await failure_of(_seqs(served, after=0, count=1, name=name)) for name in ("c1", "c2")]
        assert [(failure.code, failure.reason) for failure in failures] == [
            (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
        ] * 2


async def test_a_stalled_watcher_is_told_where_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STALL_SECONDS", 0.2)
    async with serving(f"sqlite:///{tmp_path / 'store.db'}") as served:
        store = served.store
        await served.stub.Add(an_add("r0"))
        await store.write(_fatten)
        async with grpc.aio.insecure_channel(served.running.address, SMALL_WINDOW) as channel:
            stub: Any = counter_pb2_grpc.CounterServiceStub(channel)
            stream = stub.Watch(counter_pb2.WatchRequest(counter_id="c1"))
            read = [(await stream.read()).seq]
            await eventually(lambda: _true("c1" not in store.hub._waiting))
            failure = await failure_of(_rest(stream, read))
        assert (failure.code, failure.reason) == (grpc.StatusCode.ABORTED, "WATCHER_TOO_SLOW")
        after = int(failure.metadata["after"])
        assert read == list(range(1, len(read) + 1))
        assert 1 <= after <= len(read) < FAT_ROWS


async def test_a_watcher_that_leaves_is_forgotten(database_url: str) -> None:
    async with serving(database_url) as served:
        await served.stub.Add(an_add("r0"))
        stream = served.stub.Watch(counter_pb2.WatchRequest(counter_id="c1"))
        await stream.read()
        stream.cancel()
        hub = served.store.hub
        await eventually(lambda: _true(not served.running.server._streams and "c1" not in hub._waiting))


async def test_a_listener_outlives_strange_news_and_a_lost_connection(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not features_of(make_url(database_url)).listen:
        return
    monkeypatch.setattr(notifications, "RECONNECT_SECONDS", 0.01)
    async with opened(database_url, listens=True) as counters:
        with counters.store.hub.subscribed("c9") as news:
            for statement in (
                f"SELECT pg_notify('{channel(counters.store.database)}', 'not json')",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
            ):
                news.clear()
                run = text(statement)
                await counters.store.write(lambda connection: connection.execute(run).all())  # noqa: B023
                async with within(5):
                    await news.wait()
        listener = counters.store._listener
        assert isinstance(listener, Listener)
        assert listener._thread.is_alive()


def test_too_many_names_for_one_notification_wake_everybody() -> None:
    few, many = ["b", "a"], [f"counter-{number}" for number in range(2000)]
    assert unpack(pack(few)) == ["a", "b"]
    assert unpack(pack(many)) == [ANY]
    assert len(pack(["x" * 100] * 60).encode()) <= MAX_PAYLOAD_BYTES


def _overheard(hub: notifications.Hub) -> list[str]:
    """The names of whatever the hub announces from now on."""
    heard: list[str] = []
    announce = hub.notify

    def overhear(names: Iterable[str]) -> None:
        known = list(names)
        heard.extend(known)
        announce(known)

    hub.notify = overhear  # type: ignore[method-assign]
    return heard


def _fatten(connection: Connection) -> None:
    """Rows enough, and large enough, that a reader who stands still fills every buffer on the way."""
    columns = "kind, project, run_id, machine_version, at_us, event, source, target, actor, traceparent, digest"
    connection.execute(
        text(
            f"WITH RECURSIVE n(seq) AS (SELECT 2 UNION ALL SELECT seq + 1 FROM n WHERE seq < {FAT_ROWS}) "
            f"INSERT INTO journal (entity_id, seq, position, payload, {columns}) "
            f"SELECT entity_id, n.seq, n.seq, :payload, {columns} FROM journal, n WHERE journal.seq = 1"
        ),
        {"payload": "x" * 100_000},
    )


async def _add(served: Served, count: int) -> None:
    for number in range(count):
        await served.stub.Add(an_add(f"add-{number}"))


async def _seqs(served: Served, after: int, count: int, name: str = "c1") -> list[int]:
    """The next few seqs of a counter, once it is there."""
    stream = served.stub.Watch(counter_pb2.WatchRequest(counter_id=name, after_seq=after), wait_for_ready=True)
    seqs = [(await stream.read()).seq for _ in range(count)]
    stream.cancel()
    return seqs


async def _rest(stream: Any, read: list[int]) -> None:
    while (answer := await stream.read()) is not grpc.aio.EOF:
        read.append(answer.seq)


async def _true(value: bool) -> bool:
    return value
