"""The writing thread: what is committed stays done once, what fails fails alone, an outage does not queue."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, text

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.changes import AttachChildren
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.storage import writer
from pointsman.services.chassis.storage.writer import Executed
from tests.helpers.counter import MACHINE, Add, Counter
from tests.helpers.counters import a_caller, assert_sound, held, in_one_batch, opened, rows_of, state_of
from tests.helpers.limits import within


class _Noting:
    """A kind of write that notes how often it was done."""

    def __init__(self, fails: str) -> None:
        self.fails = fails
        self.done = 0

    def execute(self, _connection: Connection, items: Sequence[Any]) -> Executed:
        if self.fails == "execute":
            raise RuntimeError("a bug")
        self.done += len(items)
        return Executed(items, self._after_commit)

    def _after_commit(self) -> None:
        if self.fails == "after_commit":
            raise RuntimeError("nobody listens any more")


class _Away:
    """An engine whose database is out of reach."""

    def __init__(self) -> None:
        self.tries = 0

    def connect(self) -> Connection:
        self.tries += 1
        raise psycopg.OperationalError("connection refused")


@pytest.mark.usefixtures("no_injected_conflicts")
async def test_a_write_is_not_done_again_when_only_its_news_fails(database_url: str) -> None:
    async with opened(database_url) as counters:
        noting = _Noting("after_commit")
        outcomes = await in_one_batch(
            counters.store, [counters.store.writer.write(noting, 1), counters.ledger.submit(a_caller(), Add("c1", 1))]
        )
        assert noting.done == 1
        assert (outcomes[0], outcomes[1].value) == (1, 1)


async def test_a_failing_write_reaches_its_own_caller_only(database_url: str) -> None:
    async with opened(database_url) as counters:
        outcomes = await in_one_batch(
            counters.store,
            [
                counters.store.writer.write(_Noting("execute"), 1),
                counters.ledger.submit(a_caller(), Add("c1", 1)),
                counters.store.write(lambda connection: connection.execute(text("SELECT broken")).first()),
                counters.store.write(lambda connection: connection.execute(text("SELECT 7")).scalar_one()),
            ],
        )
        assert isinstance(outcomes[0], RuntimeError)
        assert outcomes[1].value == 1
        assert isinstance(outcomes[2], Exception)
        assert outcomes[3] == 7


async def test_a_closed_writer_finishes_what_it_has_and_refuses_more(database_url: str) -> None:
    async with opened(database_url) as counters:
        async with held(counters.store):
            last = asyncio.ensure_future(counters.ledger.submit(a_caller(), Add("c1", 1)))
            await asyncio.sleep(0)
            closing = asyncio.create_task(asyncio.to_thread(counters.store.writer.close))
        assert (await last).value == 1
        await closing
        with pytest.raises(Refusal) as refused:
            await counters.ledger.submit(a_caller(), Add("c1", 1))
        assert refused.value.reason is Reason.UNAVAILABLE


async def test_an_outage_is_said_at_once_to_all_who_wait(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(database_url) as counters:
        away = _Away()
        async with held(counters.store):
            sent = [asyncio.ensure_future(counters.ledger.submit(a_caller(), Add("c1", 1))) for _ in range(32)]
            await asyncio.sleep(0)
            monkeypatch.setattr(counters.store.database, "writing", away)
            monkeypatch.setattr(counters.store.writer, "_connection", None)
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        assert {outcome.reason for outcome in outcomes if isinstance(outcome, Refusal)} == {Reason.UNAVAILABLE}
        assert away.tries <= 1 + writer.MAX_ATTEMPTS
        monkeypatch.undo()
        assert (await counters.ledger.submit(a_caller(), Add("c1", 1))).value == 1


async def test_a_race_lost_between_load_and_write_is_decided_again(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1))
        ledger = Ledger(counters.store, MACHINE, _Moving(times=2))
        assert (await ledger.submit(a_caller(), Add("c1", 1))).value == 2
        await assert_sound(counters)


async def test_a_race_lost_for_ever_is_aborted_and_writes_nothing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FIRST_BACKOFF_SECONDS", 0.001)
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1))
        before = await rows_of(counters, "journal")
        ledger = Ledger(counters.store, MACHINE, _Moving(times=1000))
        with pytest.raises(Refusal) as refused:
            await ledger.submit(a_caller(), Add("c1", 1))
        assert refused.value.reason is Reason.LOST_RACE
        assert await rows_of(counters, "journal") == before
        assert (await state_of(counters, "c1")).value == 1


class _Moving:
    """Children whose load moves the entity on behind the ledger's back, a few times."""

    body_type: type = Counter

    def __init__(self, times: int) -> None:
        self.times = times

    def body(self, state: Counter) -> Counter:
        return state

    def state(self, body: Counter) -> Counter:
        return body

    def load(self, connection: Connection, _commands: Any) -> AttachChildren[Counter]:
        def show(_states: Any) -> None:
            if self.times:
                self.times -= 1
                connection.execute(text("UPDATE entities SET version = version + 1"))

        return show

    def save(self, _connection: Connection, _changes: Any) -> None:
        """Nothing of its own."""


@pytest.mark.parametrize("size", [1, 3, 63, 64, 65, 200])
async def test_a_batch_of_any_size_is_written_whole(database_url: str, size: int) -> None:
    async with opened(database_url) as counters:
        for _ in range(2):
            added = [counters.ledger.submit(a_caller(), Add(f"c{n}", 1, (f"t{n}",))) for n in range(size)]
            answers = await in_one_batch(counters.store, [*added, counters.ledger.submit(a_caller(), Add("c0", 1))])
            assert len(answers) == size + 1
        await assert_sound(counters)
        counts = {table: len(await rows_of(counters, table)) for table in ("entities", "journal", "outbox")}
        assert counts == {"entities": size, "journal": 2 * (size + 1), "outbox": 2 * size}


async def test_an_entity_that_comes_to_a_run_later_is_found_by_it(database_url: str) -> None:
    async with opened(database_url) as counters:
        joining = replace(MACHINE, run_id=lambda counter: f"run-{counter.value}" if counter.value > 1 else "")
        ledger = Ledger(counters.store, joining)
        for value in range(1, 4):
            await in_one_batch(counters.store, [ledger.submit(a_caller(), Add(name, 1)) for name in ("c1", "c2")])
            runs = {row["entity_id"]: row["run_id"] for row in await rows_of(counters, "entities")}
            assert runs == dict.fromkeys(("c1", "c2"), f"run-{value}" if value > 1 else "")


async def test_a_crowd_that_was_answered_together_is_waited_for(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "GROUP_COMMIT_ITEM_DELAY_SECONDS", 30.0)
    monkeypatch.setattr(writer, "GROUP_COMMIT_MAX_DELAY_SECONDS", 30.0)
    async with opened(database_url) as counters:
        noting = _Noting("")
        crowd = writer.GROUP_COMMIT_MIN_SIZE
        await in_one_batch(counters.store, [counters.store.writer.write(noting, n) for n in range(crowd)])
        early = [asyncio.create_task(counters.store.writer.write(noting, n)) for n in range(crowd - 1)]
        await asyncio.sleep(0.05)
        assert noting.done == crowd
        await counters.store.writer.write(noting, "the last")
        await asyncio.gather(*early)
        assert noting.done == 2 * crowd


async def test_few_do_not_wait_for_each_other(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "GROUP_COMMIT_ITEM_DELAY_SECONDS", 30.0)
    monkeypatch.setattr(writer, "GROUP_COMMIT_MAX_DELAY_SECONDS", 30.0)
    async with opened(database_url) as counters:
        noting = _Noting("")
        few = writer.GROUP_COMMIT_MIN_SIZE - 1
        await in_one_batch(counters.store, [counters.store.writer.write(noting, n) for n in range(few)])
        async with within(5):
            await counters.store.writer.write(noting, "alone")
        assert noting.done == few + 1
