"""The journal of a store: numbering, chain, fold, positions, and what refusals leave behind."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext

import pytest
from sqlalchemy import Connection, text

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.journal import Transition, broken_links
from tests.helpers.counter import CEILING, Add, CounterStore
from tests.helpers.counters import a_caller, assert_sound, in_one_batch, journal_of, opened, rows_of, state_of

TEXT_COLUMNS = ("event", "source", "target", "payload", "actor", "traceparent", "kind", "project", "run_id", "digest")
NUMBER_COLUMNS = ("at_us", "machine_version")


async def test_seqs_go_from_one_to_n_and_the_state_is_the_fold(database_url: str) -> None:
    async with opened(database_url) as counters:
        for amount in (5, -2, 4):
            await counters.ledger.submit(a_caller(), Add("c1", amount))
        rows = await journal_of(counters, "c1")
        assert [(row.seq, row.event, row.source) for row in rows] == [
            (1, "added", ""),
            (2, "added", "counting"),
            (3, "added", "counting"),
        ]
        assert (await state_of(counters, "c1")).value == 7
        await assert_sound(counters)


async def test_64_commands_on_one_entity_in_a_batch_are_one_update_and_64_rows(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1))
        await counters.store.write(lambda connection: _count_updates(connection, counters))
        answers = await in_one_batch(
            counters.store, [counters.ledger.submit(a_caller(), Add("c1", 1)) for _ in range(64)]
        )
        assert [answer.value for answer in answers] == list(range(2, 66))
        assert len(await journal_of(counters, "c1")) == 65
        updates = await counters.store.database.read(
            lambda connection: connection.execute(text("SELECT count(*) FROM updates")).scalar_one()
        )
        assert updates == 1
        await assert_sound(counters)


async def test_a_batch_creates_an_entity_and_moves_it_on(database_url: str) -> None:
    async with opened(database_url) as counters:
        await in_one_batch(counters.store, [counters.ledger.submit(a_caller(), Add("c1", 1)) for _ in range(3)])
        assert (await state_of(counters, "c1")).value == 3
        await assert_sound(counters)


async def test_a_row_changed_afterwards_breaks_the_chain(database_url: str) -> None:
    async with opened(database_url) as counters:
        for column in (*TEXT_COLUMNS, *NUMBER_COLUMNS):
            for _ in range(3):
                await counters.ledger.submit(a_caller(), Add(column, 1))
            value = "7" if column in NUMBER_COLUMNS else "'forged'"
            change = text(f"UPDATE journal SET {column} = {value} WHERE seq = 2 AND entity_id = '{column}'")
            await counters.store.write(lambda connection: connection.execute(change).rowcount)  # noqa: B023
            assert 2 in broken_links(await _all_rows(counters, column)), column


async def test_a_row_taken_out_breaks_the_chain(database_url: str) -> None:
    async with opened(database_url) as counters:
        for _ in range(3):
            await counters.ledger.submit(a_caller(), Add("c1", 1))
        await counters.store.write(
            lambda connection: connection.execute(text("DELETE FROM journal WHERE seq = 2")).rowcount
        )
        assert broken_links(await journal_of(counters, "c1")) == [3]


async def test_a_refused_command_writes_nothing(database_url: str) -> None:
    async with opened(database_url) as counters:
        before = await _everything(counters)
        with pytest.raises(Refusal) as refused:
            await counters.ledger.submit(a_caller(), Add("c1", CEILING + 1, ("them",), 1.0))
        assert refused.value.reason is Reason.STATE_FORBIDS
        assert await _everything(counters) == before


async def test_a_refusal_in_a_batch_harms_nobody_else(database_url: str) -> None:
    async with opened(database_url) as counters:
        amounts = (1, CEILING + 1, 2)
        outcomes = await in_one_batch(
            counters.store, [counters.ledger.submit(a_caller(), Add("c1", amount)) for amount in amounts]
        )
        assert [isinstance(outcome, Refusal) for outcome in outcomes] == [False, True, False]
        assert (await state_of(counters, "c1")).value == 3
        await assert_sound(counters)


async def test_a_bug_in_a_batch_harms_nobody_else(database_url: str) -> None:
    async with opened(database_url) as counters:
        commands: list[object] = [Add("c1", 1), _NoCommand("c1"), Add("c2", 1)]
        outcomes = await in_one_batch(
            counters.store,
            [counters.ledger.submit(a_caller(), command) for command in commands],  # type: ignore[arg-type]
        )
        assert isinstance(outcomes[1], AttributeError)
        assert (await state_of(counters, "c1")).value == (await state_of(counters, "c2")).value == 1
        await assert_sound(counters)


async def test_an_entity_of_another_project_is_missing_to_the_byte(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(project="theirs"), Add("c1", 1))
        foreign = await _refusal(counters, "c1")
        missing = await _refusal(counters, "c2")
        assert foreign.message.replace("c1", "c2") == missing.message
        assert {**foreign.metadata, "id": "c2"} == missing.metadata
        assert foreign.reason is missing.reason is Reason.NOT_FOUND
        with pytest.raises(Refusal) as refused:
            await counters.ledger.submit(a_caller(), Add("c1", 1))
        assert refused.value.reason is Reason.NOT_FOUND
        with pytest.raises(Refusal) as unseen:
            await state_of(counters, "c1")
        assert unseen.value.reason is Reason.NOT_FOUND


async def test_an_entity_written_by_a_newer_machine_is_refused(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(), Add("new", 1))
        await counters.store.write(
            lambda connection: connection.execute(text("UPDATE entities SET machine_version = 2")).rowcount
        )
        outcomes = await in_one_batch(
            counters.store, [counters.ledger.submit(a_caller(), Add(name, 1)) for name in ("new", "other")]
        )
        assert isinstance(outcomes[0], Refusal)
        assert outcomes[0].reason is Reason.UNKNOWN_VERSION
        assert outcomes[1].value == 1


async def test_positions_follow_the_commits_of_two_replicas(database_url: str) -> None:
    async with opened(database_url, listens=True) as one, _second(database_url, one) as two:
        seen: list[Transition] = []

        async def follow() -> None:
            async for [row] in one.journal.changes(None, 0):
                seen.append(row)
                if len(seen) == 80:
                    return

        following = asyncio.create_task(follow())
        adds = [(one, two)[number % 2].ledger.submit(a_caller(), Add(f"c{number % 7}", 1)) for number in range(80)]
        await asyncio.gather(*adds)
        await following
        assert [row.position for row in seen] == list(range(1, 81))
        await assert_sound(one)


class _NoCommand:
    """A command that the machine does not know."""

    def __init__(self, entity_id: str) -> None:
        self.entity_id = entity_id


def _second(url: str, first: CounterStore) -> AbstractAsyncContextManager[CounterStore]:
    """Another replica where the database allows one; a file has one owner."""
    return opened(url) if first.store.database.is_postgresql else nullcontext(first)


def _count_updates(connection: Connection, counters: CounterStore) -> None:
    """Let the database itself note each update of an entity."""
    connection.execute(text("CREATE TABLE updates (entity_id TEXT)"))
    if not counters.store.database.is_postgresql:
        connection.execute(
            text("CREATE TRIGGER note AFTER UPDATE ON entities BEGIN INSERT INTO updates VALUES (new.entity_id); END")
        )
        return
    body = "BEGIN INSERT INTO updates VALUES (new.entity_id); RETURN new; END"
    connection.execute(text(f"CREATE FUNCTION note() RETURNS trigger AS $$ {body} $$ LANGUAGE plpgsql"))
    connection.execute(text("CREATE TRIGGER note AFTER UPDATE ON entities FOR EACH ROW EXECUTE FUNCTION note()"))


async def _all_rows(counters: CounterStore, counter_id: str) -> list[Transition]:
    return await counters.store.database.read(lambda connection: counters.journal.rows(connection, counter_id, 0, 100))


async def _everything(counters: CounterStore) -> list[object]:
    tables = ("entities", "journal", "outbox", "timers", "idempotency", "head")
    return [await rows_of(counters, table) for table in tables]


async def _refusal(counters: CounterStore, counter_id: str) -> Refusal:
    with pytest.raises(Refusal) as refused:
        await journal_of(counters, counter_id)
    return refused.value
