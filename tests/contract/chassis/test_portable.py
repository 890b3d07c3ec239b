"""Stores on a server without LISTEN, advisory locks and SKIP LOCKED, at SERIALIZABLE; `make portable` runs all of it so."""

from collections.abc import Awaitable, Callable, Iterator

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url

from pointsman.services.chassis.core.config import DatabaseFeatures, StoreSettings
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage import writer
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.features import PORTABLE, POSTGRESQL, SQLITE, features_of
from pointsman.services.chassis.storage.server_probe import OPTIONAL, REQUIRED, missing, version_of
from pointsman.services.chassis.telemetry import metrics
from tests.contract.chassis import test_idempotency, test_journal, test_leases, test_outbox, test_races, test_timers
from tests.contract.chassis import test_watch as watching
from tests.contract.orchestrator import test_leases as assignments
from tests.helpers.counter import Add
from tests.helpers.counters import a_caller, assert_sound, opened, state_of
from tests.helpers.migrated import migrated_postgres_database
from tests.helpers.portable import portable
from tests.helpers.postgres import PostgresServer

RACES: list[Callable[[str], Awaitable[None]]] = [
    test_races.test_64_writers_on_one_entity,
    test_races.test_64_writers_on_many_entities,
    test_races.test_the_same_requests_to_all_replicas_at_once_count_once,
    test_races.test_refusals_among_racing_writers_leave_no_trace,
    test_idempotency.test_one_request_sent_64_times_at_once_counts_once,
    test_journal.test_positions_follow_the_commits_of_two_replicas,
    test_leases.test_one_of_many_gets_the_lease,
    test_outbox.test_two_replicas_deliver_each_effect_once,
    test_timers.test_a_timer_is_fired_once_by_two_runners,
    watching.test_a_commit_on_one_replica_is_seen_on_another_within_a_second,
    assignments.test_an_assignment_is_claimed_by_exactly_one_of_many_pollers,
    assignments.test_after_three_leases_an_assignment_is_exhausted,
]


@pytest.fixture
def portable_url(postgres: PostgresServer) -> Iterator[str]:
    """A PostgreSQL database with migrated stores, used as if it were another server."""
    with migrated_postgres_database(postgres) as url:
        yield portable(url)


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__.removeprefix("test_"))
async def test_what_holds_on_postgresql_holds_without_its_extras(
    race: Callable[[str], Awaitable[None]], portable_url: str
) -> None:
    await race(portable_url)


async def test_a_conflict_is_tried_again_with_the_whole_batch_and_counted(
    portable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[psycopg.OperationalError] = [
        psycopg.errors.SerializationFailure("first"),
        psycopg.errors.DeadlockDetected("second"),
    ]
    counted = metrics.commit_conflicts.labels("counter")
    async with opened(portable_url) as counters:
        before = counted._value.get()
        _fail_commits(monkeypatch, left)
        assert (await counters.ledger.submit(a_caller(), Add("c1", 1))).value == 1
        assert counted._value.get() - before >= 2
        assert (await state_of(counters, "c1")).value == 1
        await assert_sound(counters)
    assert not left


async def test_a_conflict_that_never_ends_is_refused_as_a_lost_race_and_writes_nothing(
    portable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_CONFLICTS", 2)
    monkeypatch.setattr(writer, "FIRST_BACKOFF_SECONDS", 0.0)
    async with opened(portable_url) as counters:
        with monkeypatch.context() as failing:
            _fail_commits(failing, [psycopg.errors.SerializationFailure(f"{number}") for number in range(1000)])
            with pytest.raises(Refusal) as refused:
                await counters.ledger.submit(a_caller("r1"), Add("c1", 1))
        assert refused.value.reason is Reason.LOST_RACE
        assert (await counters.ledger.submit(a_caller("r1"), Add("c1", 1))).value == 1


def test_the_address_says_which_features_are_used() -> None:
    url = "postgresql://me@host/db"
    plain, other = (
        StoreSettings(database_url=url),
        StoreSettings(database_url=url, database_features=DatabaseFeatures.PORTABLE),
    )
    assert features_of(make_url(plain.url_for("router"))) == POSTGRESQL
    assert features_of(make_url(other.url_for("router"))) == PORTABLE
    assert features_of(make_url("sqlite:///store.db")) == SQLITE
    database = Database(other.url_for("router"), "router")
    assert str(database.url) == url, "the driver does not see the parameter"


async def test_a_server_is_asked_for_what_the_stores_use(portable_url: str) -> None:
    async with opened(portable_url) as counters:

        def probe(connection: object) -> tuple[str, list[str], list[str], list[str]]:
            odd = {"a function that nobody has": "SELECT no_such_function()"}
            found = (missing(connection, REQUIRED), missing(connection, OPTIONAL), missing(connection, odd))  # type: ignore[arg-type]
            assert connection.execute(text("SELECT 1")).scalar_one() == 1  # type: ignore[attr-defined]
            return version_of(connection), *found  # type: ignore[arg-type]

        version, required, optional, odd = await counters.store.database.read(probe)
    assert version.startswith("PostgreSQL ")
    assert (required, optional, odd) == ([], [], ["a function that nobody has"])


def _fail_commits(monkeypatch: pytest.MonkeyPatch, errors: list[psycopg.OperationalError]) -> None:
    """Let the next commits fail with these errors, one each."""
    commit = writer.Writer._commit_batch

    def failing(self: writer.Writer, writes: list[writer._PendingWrite]) -> None:
        if errors:
            raise errors.pop(0)
        commit(self, writes)

    monkeypatch.setattr(writer.Writer, "_commit_batch", failing)


def test_every_database_of_a_process_isolates_its_transactions_alike(portable_url: str) -> None:
    plain_url = portable_url.partition("&")[0]
    for url, writing in (plain_url, "read committed"), (portable_url, "serializable"):
        for _ in range(2):
            database = Database(url, "counter")
            found = [_isolation(engine) for engine in (database.writing, database.reading)]
            database.close()
            assert found == [writing, "repeatable read"], "the second may use what the first has learnt"


def _isolation(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.execute(text("SHOW transaction_isolation")).scalar_one())
