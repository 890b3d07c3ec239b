"""Requests that straddle the upgrade after which each principal has request ids of its own: answered once, by either version."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.alembic_upgrade import upgrade
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import CHASSIS_MIGRATIONS
from tests.helpers.counter import Add, Answer, CounterStore
from tests.helpers.counters import a_caller, opened, rows_of
from tests.helpers.databases import empty_postgres_database

LAST_WITHOUT_OWN_IDS = "0002"
KEPT_BY_THE_VERSION_BEFORE = text(
    "INSERT INTO idempotency (request_id, project, fingerprint, entity_id, command, answer, at_us, principal) "
    "VALUES (:request_id, 'local', 'same', 'c1', 'Add', :answer, :at_us, :principal)"
)
READ_BY_THE_VERSION_BEFORE = text(
    "SELECT project, request_id, fingerprint, answer FROM idempotency WHERE request_id = :request_id"
)
FIRST = '{"value":5,"seq":1}'


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of each kind in turn that nobody has migrated."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    with empty_postgres_database(request.getfixturevalue("postgres")) as url:
        yield url


def asks(principal: str, request_id: str) -> Caller:
    return replace(a_caller(request_id), principal=principal)


def kept(principal: str, request_id: str) -> dict[str, Any]:
    """A record as the version before writes it."""
    at_us = 2**62  # far from being forgotten
    return {"request_id": request_id, "principal": principal, "answer": FIRST, "at_us": at_us}


def as_the_version_before(url: str) -> None:
    """A store of the version before, with three records."""
    database = Database(url, "counter")
    with database.writing.begin() as connection:
        if database.is_postgresql:
            connection.execute(text("CREATE SCHEMA IF NOT EXISTS counter"))
        upgrade(connection, CHASSIS_MIGRATIONS, "chassis_version", LAST_WITHOUT_OWN_IDS)
        for record in (kept("alice", "r1"), kept("", "oldest"), kept("alice", "r2")):
            connection.execute(KEPT_BY_THE_VERSION_BEFORE, record)
    database.close()


async def add(counters: CounterStore, principal: str, request_id: str, fingerprint: str = "same") -> Answer:
    caller = replace(asks(principal, request_id), fingerprint=fingerprint)
    answer: Answer = await counters.ledger.submit(caller, Add("c1", 1))
    return answer


async def test_a_request_that_was_answered_before_the_upgrade_is_answered_alike_after_it(database_url: str) -> None:
    await asyncio.to_thread(as_the_version_before, database_url)
    async with opened(database_url) as counters:
        assert await add(counters, "alice", "r1") == Answer(5, 1)
        with pytest.raises(Refusal) as refused:
            await add(counters, "alice", "r1", "another body")
        assert refused.value.reason is Reason.REQUEST_ID_REUSED
        assert await add(counters, "mallory", "r1") == Answer(1, 1), "hers is another request"
        assert await add(counters, "alice", "oldest") == Answer(5, 1), "a record that names nobody, the same request"
        assert await add(counters, "alice", "oldest", "another body") == Answer(2, 2), "it keeps nobody from anything"
        assert len(await rows_of(counters, "idempotency")) == 5


async def test_a_replica_of_the_version_before_goes_on_beside_the_new_one(database_url: str) -> None:
    await asyncio.to_thread(as_the_version_before, database_url)
    async with opened(database_url) as counters:
        other = Database(database_url, "counter")
        with other.writing.begin() as connection:
            connection.execute(KEPT_BY_THE_VERSION_BEFORE, kept("alice", "by the old one"))
        assert await add(counters, "alice", "by the old one") == Answer(5, 1), "asked again at the new one"
        assert await add(counters, "alice", "by the new one") == Answer(1, 1)
        with other.reading.connect() as connection:
            (seen,) = connection.execute(READ_BY_THE_VERSION_BEFORE, {"request_id": "by the new one"})
        assert tuple(seen)[:3] == ("local", "by the new one", "same"), "asked again at the old one"
        with pytest.raises(IntegrityError), other.writing.begin() as connection:
            connection.execute(KEPT_BY_THE_VERSION_BEFORE, kept("alice", "by the new one"))
        other.close()
