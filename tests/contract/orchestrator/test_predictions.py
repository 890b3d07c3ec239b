"""Snapshots and predictions on both databases: each replaces the one before, and is of its project only."""

import asyncio
from pathlib import Path
from typing import Any

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.landing_pb2_grpc import LandingServiceStub
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.orchestrator.domain.views import Prediction, Snapshot
from pointsman.services.orchestrator.store.predictions import FRESH_US, MAX_ANSWER_BYTES, MAX_SNAPSHOTS
from tests.contract.orchestrator.orchestrators import orchestrator
from tests.contract.orchestrator.test_service import RESEARCH, poll, reason_of
from tests.scenarios.planes import NOBODY, plane


async def test_the_newest_tree_of_each_run_is_kept_and_old_ones_go(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        predictions = store.predictions

        async def put(run_id: str, commit: str, project: str = "local", task: str = "T1") -> None:
            tree = ("b" * 40, commit * 40, b"bundle of " + commit.encode())
            snapshot = Snapshot(f"{run_id}.{task}", run_id, *tree, task, ("a.py",))
            await store.store.write(lambda connection: predictions.put(connection, project, "repository", snapshot))

        for commit in "123":
            await put("run_1", commit)
        await put("run_2", "4")
        await put("run_3", "5", "elsewhere")
        await put("run_2", "7", task="T2")
        trees = await predictions.fresh("local", "repository", ["4" * 40])
        found = {(one.run_id, one.task_id): (one.commit[0], one.bundle) for one in trees.snapshots}
        wanted = {
            ("run_1", "T1"): ("3", b"bundle of 3"),
            ("run_2", "T1"): ("4", b""),
            ("run_2", "T2"): ("7", b"bundle of 7"),
        }
        assert found == wanted, "the newest of each task, without what the asker has"
        assert {one.declared_files for one in trees.snapshots} == {("a.py",)}
        assert not (await predictions.fresh("local", "another repository")).snapshots
        table = predictions.snapshots
        aged = table.update().values(at_us=table.c.at_us - FRESH_US)
        await store.store.write(lambda connection: connection.execute(aged))
        assert not (await predictions.fresh("local", "repository")).snapshots
        for number in range(MAX_SNAPSHOTS + 5):
            await put(f"run_{100 + number}", "6")
        assert len((await predictions.fresh("local", "repository")).snapshots) == MAX_SNAPSHOTS


async def test_large_trees_come_in_several_answers_and_a_new_one_wakes_whoever_waits(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        predictions = store.predictions

        async def put(number: int) -> None:
            tree = ("b" * 40, f"{number:040x}", b"x" * 1024 * 1024)
            snapshot = Snapshot(f"run_{number}.a1", f"run_{number}", *tree)
            await store.store.write(lambda connection: predictions.put(connection, "local", "repository", snapshot))

        for number in range(1, 7):
            await put(number)
        have: set[str] = set()
        answers = 0
        more = True
        while more:
            found = await predictions.fresh("local", "repository", have)
            have |= {one.commit for one in found.snapshots if one.bundle}
            more, answers = found.more, answers + 1
            assert sum(len(one.bundle) for one in found.snapshots) <= MAX_ANSWER_BYTES
        assert (len(have), answers) == (6, 2)
        waiting = asyncio.create_task(predictions.wait("local", "repository", found.as_of_us, 600))
        await asyncio.sleep(0)
        await put(7)
        await waiting


async def test_what_is_predicted_is_shown_in_both_runs_until_it_is_replaced(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        predictions = store.predictions
        twice = [
            Prediction("run_2", "run_1", ("a.py",), 0, "T2", "T1"),
            Prediction("run_1", "run_2", ("a.py",), 0, "T1", "T2"),
        ]
        await predictions.replace("local", "repository", [*twice, Prediction("run_3", "run_4", ("b.py", "c.py"))])
        await predictions.replace("local", "other", [Prediction("run_8", "run_9", ("d.py",))])
        for run_id in ("run_1", "run_2"):
            (shown,) = await predictions.of("local", run_id)
            sides = (shown.run_id, shown.task_id, shown.other_run_id, shown.other_task_id)
            assert (sides, shown.files) == (("run_1", "T1", "run_2", "T2"), ("a.py",))
        assert len(await predictions.of("local")) == 3
        assert not await predictions.of("elsewhere")
        await predictions.replace("local", "repository", [])
        assert [one.run_id for one in await predictions.of("local")] == ["run_8"]


async def test_only_the_holder_of_a_lease_puts_its_tree_and_the_run_is_that_of_the_lease(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        landing: Any = LandingServiceStub(here.channel)
        run = await here.submit(repository=Repository(id="repository", base_commit="b" * 40))
        wanted = agent.Wanted(capabilities=RESEARCH.capabilities, repository_ids=["repository"])
        lease = await poll(here, "ada", wanted)
        snapshot = pb.Snapshot(run_id="run_of_somebody_else", base_commit="b" * 40, commit="c" * 40, bundle=b"bundle")

        def asked(request_id: str, **changes: Any) -> pb.PutSnapshotRequest:
            held = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
            for name, value in changes.items():
                setattr(held, name, value)
            return pb.PutSnapshotRequest(
                request_id=request_id, agent_id="ada", lease=held, repository_id="repository", snapshot=snapshot
            )

        wrongs: list[dict[str, Any]] = [{"secret": "another"}, {"epoch": 9}, {"assignment_id": f"{run.id}.a99"}]
        for number, wrong in enumerate(wrongs):
            assert await reason_of(landing.PutSnapshot(asked(f"w{number}", **wrong))) is Reason.LEASE_LOST
        foreign = asked("foreign")
        foreign.repository_id = "another"
        assert await reason_of(landing.PutSnapshot(foreign)) is Reason.INVALID_FIELD
        await landing.PutSnapshot(asked("right"))
        found = await landing.ListSnapshots(pb.ListSnapshotsRequest(repository_id="repository"))
        assert [(one.run_id, one.bundle) for one in found.snapshots] == [(run.id, b"bundle")]
