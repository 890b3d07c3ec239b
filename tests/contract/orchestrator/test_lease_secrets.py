"""The secret of a lease, on both databases: without it nothing of the lease is to be had, and it is stored nowhere."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Inspector, create_engine, inspect, text

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.ids import secret_digest
from pointsman.services.chassis.storage.alembic_upgrade import upgrade
from pointsman.services.chassis.storage.migrate import CHASSIS_MIGRATIONS
from pointsman.services.orchestrator.__main__ import MIGRATIONS
from pointsman.services.orchestrator.domain.views import LeaseView
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.agents import Holder
from tests.contract.orchestrator import orchestrators as stored
from tests.contract.orchestrator.orchestrators import EVERYTHING
from tests.contract.orchestrator.test_handing_in import handing_in, researching, take, wanted
from tests.contract.orchestrator.test_service import good_report
from tests.scenarios.planes import NOBODY, Plane, plane

LAST_WITHOUT_SECRETS = "0004"
WRONG = "lease_" + "0" * 64
TABLES = (
    "entities", "journal", "outbox", "timers", "idempotency", "assignments", "documents", "agents", "run_index", "artifacts",
)  # fmt: skip


def with_secret(lease: agent.Lease, secret: str) -> agent.Lease:
    other = agent.Lease()
    other.CopyFrom(lease)
    other.secret = secret
    return other


def everything_about(
    here: Plane, lease: agent.Lease
) -> Iterator[tuple[str, agent.FailRequest | agent.CompleteRequest]]:
    """Each way to end a lease, under the name of its holder."""
    report = good_report(lease)
    yield "Complete", handing_in(here, report)
    plain, permanent, returned = (agent.Failure(lease=report.lease, error="stolen") for _ in range(3))
    permanent.permanent = returned.returned = True
    for failure in (plain, permanent, returned):
        yield "Fail", agent.FailRequest(request_id=here.request_id(), agent_id="ada", failures=[failure])


async def beat(here: Plane, lease: agent.Lease) -> list[str]:
    beating = agent.HeartbeatRequest(request_id=here.request_id(), agent_id="ada", leases=[good_report(lease).lease])
    return list((await here.agents.Heartbeat(beating)).lost_assignment_ids)


@pytest.mark.parametrize("secret", ["", WRONG])
async def test_who_knows_assignment_epoch_agent_and_credential_but_not_the_secret_is_told_that_the_lease_is_lost(
    tmp_path: Path, database_url: str, secret: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        await researching(here, 1)
        (lease,) = await take(here, 1)
        too_new = with_secret(lease, lease.secret)
        too_new.epoch += 1
        thief = with_secret(lease, secret)
        assert len(lease.secret) > 64
        assert await beat(here, thief) == await beat(here, too_new) == [lease.assignment.id]
        told = list(zip(everything_about(here, thief), everything_about(here, too_new), strict=True))
        for (method, stolen), (_, late) in told:
            refused = (await getattr(here.agents, method)(stolen)).outcomes[0]
            assert refused.reason == common.ERROR_REASON_LEASE_LOST
            other = (await getattr(here.agents, method)(late)).outcomes[0]
            assert refused.SerializeToString() == other.SerializeToString()
        assert await beat(here, lease) == []
        assert (await here.agents.Complete(handing_in(here, good_report(lease)))).outcomes[0].accepted


async def test_of_several_results_only_those_with_their_secret_are_taken(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        await researching(here, 3)
        leases = await take(here, 3)
        leases[1] = with_secret(leases[1], leases[0].secret)
        answer = await here.agents.Complete(handing_in(here, *map(good_report, leases)))
        assert [outcome.accepted for outcome in answer.outcomes] == [True, False, True]
        assert answer.outcomes[1].reason == common.ERROR_REASON_LEASE_LOST


async def test_a_repeated_poll_answers_leases_that_work_whichever_of_its_answers_arrived(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        await researching(here, 2)
        asked = agent.PollRequest(request_id="lost-answer", agent_id="ada", wanted=wanted(2))
        answers = [(await here.agents.Poll(asked)).leases for _ in range(3)]
        assert len({lease.secret for leases in answers for lease in leases}) == 6
        assert len({lease.assignment.id for leases in answers for lease in leases}) == 2
        for leases in answers:
            assert [await beat(here, lease) for lease in leases] == [[], []]
        reports = (good_report(answers[0][0]), good_report(answers[2][1]))
        assert all(one.accepted for one in (await here.agents.Complete(handing_in(here, *reports))).outcomes)


async def test_no_more_than_the_last_four_answers_to_a_poll_stay_good(database_url: str) -> None:
    async with stored.orchestrator(database_url) as store:
        await stored.researching(store, "run_a")
        answers = [(await stored.take(store, "ada", poll_id="same"))[0] for _ in range(5)]
        assert [await is_good(store, held) for held in answers] == [False, True, True, True, True]


async def is_good(store: OrchestratorStore, held: LeaseView) -> bool:
    holder, key = Holder("local", LOCAL, held.agent_id), stored.key_of(held)
    _, lost = await store.store.write(lambda connection: store.matcher.renew(connection, holder, [key], EVERYTHING))
    return lost == []


async def test_polls_that_are_repeated_at_the_same_time_all_get_leases_that_work(database_url: str) -> None:
    async with stored.orchestrator(database_url) as one, stored.orchestrator(database_url) as other:
        await stored.researching(one, "run_a")
        (first,) = await stored.take(one, "ada", poll_id="same")
        again = await asyncio.gather(*(stored.take(each, "ada", poll_id="same") for each in (one, other)))
        assert [await is_good(one, held) for held in (first, *(held for (held,) in again))] == [True] * 3


async def test_a_repeated_completion_with_next_answers_a_lease_that_works(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        await researching(here, 2)
        (lease,) = await take(here, 1)
        request = handing_in(here, good_report(lease))
        request.next.CopyFrom(wanted())
        answers = [await here.agents.Complete(request) for _ in range(2)]
        assert [answer.outcomes[0].accepted for answer in answers] == [True, True]
        (first,), (second,) = (answer.leases for answer in answers)
        assert first.assignment.id == second.assignment.id != lease.assignment.id
        assert await beat(here, first) == []
        assert (await here.agents.Complete(handing_in(here, good_report(second)))).outcomes[0].accepted


async def test_a_secret_is_stored_nowhere_and_told_to_nobody_else(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        (run_id,) = await researching(here, 2)
        (lease,) = await take(here, 1)
        request = handing_in(here, good_report(lease))
        request.next.CopyFrom(wanted())
        following = (await here.agents.Complete(request)).leases[0]
        refused = await here.agents.Complete(handing_in(here, good_report(with_secret(following, WRONG))))
        shown = [
            str(refused),
            str(await here.agents.ListAssignments(agent.ListAssignmentsRequest(run_id=run_id))),
            str(await here.agents.ListAgents(agent.ListAgentsRequest())),
            str(await here.runs.ListTransitions(pb.ListTransitionsRequest(run_id=run_id))),
            str(await here.runs.GetRun(pb.GetRunRequest(run_id=run_id))),
        ]
    async with stored.orchestrator(store_url(tmp_path, database_url)) as store:
        rows = await store.store.database.read(
            lambda connection: [
                str(row) for name in TABLES for row in connection.execute(text(f"SELECT * FROM {name}"))
            ]
        )
    assert any(secret_digest(following.secret) in row for row in rows)
    for secret in (lease.secret, following.secret, WRONG):
        assert [place for place in (*shown, *rows) if secret in place] == []


def store_url(folder: Path, database_url: str) -> str:
    return f"sqlite:///{folder / 'orchestrator.db'}" if database_url.startswith("sqlite") else database_url


async def test_a_lease_that_is_live_during_the_upgrade_goes_back_and_its_holder_is_told(database_url: str) -> None:
    async with stored.orchestrator(database_url) as store:
        await stored.researching(store, "run_a")
        (held,) = await stored.take(store, "ada")
        await store.store.write(as_the_version_before)
    async with stored.orchestrator(database_url) as store:
        with pytest.raises(Refusal) as caught:
            await store.ledger.submit(stored.caller(), stored.report(held))
        assert caught.value.reason is Reason.LEASE_LOST
        (again,) = await stored.take(store, "ada")
        assert (again.assignment_id, again.epoch, again.attempt) == (held.assignment_id, 2, 1)
        assert (await store.ledger.submit(stored.caller(), stored.report(again))).accepted


def as_the_version_before(connection: Connection) -> None:
    """Take away what migrations after this version have added."""
    before = create_engine("sqlite://")
    with before.begin() as old:
        upgrade(old, CHASSIS_MIGRATIONS, "chassis_version")
        upgrade(old, MIGRATIONS, "context_version", LAST_WITHOUT_SECRETS)
        go_back(inspect(old), inspect(connection), lambda change: connection.execute(text(change)))
    before.dispose()
    connection.execute(text(f"UPDATE context_version SET version_num = '{LAST_WITHOUT_SECRETS}'"))


def go_back(old: Inspector, new: Inspector, change: Callable[[str], object]) -> None:
    """Drop the tables, indexes and columns that were not there."""
    for name in new.get_table_names():
        if name not in old.get_table_names():
            change(f"DROP TABLE {name}")
            continue
        known = {index["name"] for index in old.get_indexes(name)}
        for index in new.get_indexes(name):
            if index["name"] not in known:
                change(f"DROP INDEX {index['name']}")
        columns = {column["name"] for column in old.get_columns(name)}
        for column in new.get_columns(name):
            if column["name"] not in columns:
                change(f"ALTER TABLE {name} DROP COLUMN {column['name']}")
