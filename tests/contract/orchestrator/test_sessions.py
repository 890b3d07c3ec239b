"""Runs of one session that are submitted at once, on both databases: at most one goes on without seeing another."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import psycopg

from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.model import Budget
from pointsman.services.orchestrator.store import OrchestratorStore
from tests.contract.orchestrator.orchestrators import caller, orchestrator, order
from tests.helpers.counters import in_one_batch
from tests.helpers.eventually import eventually
from tests.helpers.migrated import migrated_postgres_database
from tests.helpers.postgres import PostgresServer
from tests.scenarios.planes import NOBODY, plane

PAIRS = 40


def submit(run_id: str, session_id: str, project: str = "local") -> commands.Submit:
    return commands.Submit(run_id, "do it", order(project, session_id=session_id), Budget())


async def rivals(store: OrchestratorStore, run_ids: Sequence[str]) -> dict[str, str]:
    """The run that each of the runs saw in its session; empty where it goes on."""
    return {run_id: (await store.view("local", run_id)).run.order.rival_run_id for run_id in run_ids}


async def test_of_two_submits_at_once_in_a_session_one_sees_the_other(database_url: str, tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        for pair in range(PAIRS):
            session_id = f"session-{pair}"
            first, second = await asyncio.gather(here.submit(session_id=session_id), here.submit(session_id=session_id))
            asked = [run for run in (first, second) if run.question.kind == runs.QUESTION_KIND_CONFLICT]
            assert len(asked) == 1, (pair, first, second)
            assert list(asked[0].question.subjects) == [run.id for run in (first, second) if run is not asked[0]]


async def test_of_many_submits_of_a_session_in_one_commit_one_goes_on(database_url: str) -> None:
    run_ids = [f"run_{number:02}" for number in range(20)]
    async with orchestrator(database_url) as store:
        sent = [store.ledger.submit(caller(), submit(run_id, "s")) for run_id in run_ids]
        await in_one_batch(store.store, sent)
        seen = await rivals(store, run_ids)
        assert seen == {run_id: "" if run_id == "run_00" else "run_00" for run_id in run_ids}


async def test_a_run_that_ends_in_the_same_commit_is_no_conflict_for_what_comes_after_it(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await store.ledger.submit(caller(), submit("run_a", "s"))
        await in_one_batch(
            store.store,
            [
                store.ledger.submit(caller(), submit("run_b", "s")),
                store.ledger.submit(caller(), commands.Cancel("run_a", "enough")),
                store.ledger.submit(caller(), commands.Cancel("run_b", "enough")),
                store.ledger.submit(caller(), submit("run_c", "s")),
            ],
        )
        assert await rivals(store, ["run_b", "run_c"]) == {"run_b": "run_a", "run_c": ""}


async def test_a_conflict_is_with_the_run_that_goes_on_not_with_one_that_waits_itself(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        together = [store.ledger.submit(caller(), submit(run_id, "s")) for run_id in ("run_z", "run_b", "run_a")]
        await in_one_batch(store.store, together)
        await in_one_batch(
            store.store,
            [
                store.ledger.submit(caller(), commands.ChangeRequirement("run_missing", "more")),
                store.ledger.submit(caller(), commands.TimerFired("run_b", "wall_clock")),
                store.ledger.submit(caller(), submit("run_c", "s")),
                store.ledger.submit(caller(), commands.Cancel("run_z", "enough")),
                store.ledger.submit(caller(), submit("run_d", "s")),
            ],
        )
        seen = await rivals(store, ["run_z", "run_b", "run_a", "run_c", "run_d"])
        assert seen == {"run_z": "", "run_b": "run_z", "run_a": "run_z", "run_c": "run_z", "run_d": "run_b"}


async def test_sessions_of_the_same_name_in_other_projects_and_runs_without_one_never_conflict(
    database_url: str,
) -> None:
    async with orchestrator(database_url) as store:
        await in_one_batch(
            store.store,
            [
                store.ledger.submit(caller(), submit("run_a", "s")),
                store.ledger.submit(caller(project="elsewhere"), submit("run_b", "s", "elsewhere")),
                store.ledger.submit(caller(), submit("run_c", "")),
                store.ledger.submit(caller(), submit("run_d", "")),
            ],
        )
        await store.ledger.submit(caller(), submit("run_e", ""))
        assert set((await rivals(store, ["run_a", "run_c", "run_d", "run_e"])).values()) == {""}
        assert (await store.view("elsewhere", "run_b")).run.order.rival_run_id == ""


async def test_two_replicas_never_both_let_a_run_of_a_session_go_on(postgres: PostgresServer) -> None:
    with migrated_postgres_database(postgres) as url:
        async with orchestrator(url) as one, orchestrator(url) as two:
            for pair in range(PAIRS):
                run_ids = [f"run_{pair}_{number}" for number in range(6)]
                sent = [
                    store.ledger.submit(caller(), submit(run_id, f"session-{pair}"))
                    for run_id, store in zip(run_ids, (one, two) * 3, strict=True)
                ]
                await asyncio.gather(*sent)
                seen = await rivals(one, run_ids)
                goes_on = [run_id for run_id, rival in seen.items() if not rival]
                assert len(goes_on) == 1, (pair, seen)


async def test_two_replicas_that_have_both_decided_before_either_commits_decide_again(postgres: PostgresServer) -> None:
    with migrated_postgres_database(postgres) as url:
        async with orchestrator(url) as one, orchestrator(url) as two:
            with psycopg.connect(url) as holder:
                holder.execute("SELECT position FROM orchestrator.head FOR UPDATE")
                sent = [
                    asyncio.create_task(store.ledger.submit(caller(), submit(run_id, "s")))
                    for run_id, store in (("run_a", one), ("run_b", two))
                ]
                await eventually(lambda: _both_wait(postgres))
            await asyncio.gather(*sent)
            assert sorted((await rivals(one, ["run_a", "run_b"])).values()) in (["", "run_a"], ["", "run_b"])


async def _both_wait(postgres: PostgresServer) -> bool:
    """Whether two transactions wait for a lock."""
    async with await psycopg.AsyncConnection.connect(postgres.url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        found = await (await connection.execute(query)).fetchone()
    return found == (2,)
