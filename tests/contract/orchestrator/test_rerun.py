"""Doing a run again over gRPC, on both databases: once for a request, linked, found as one story, and audited."""

from pathlib import Path

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.audit.runs import RunProof
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.engine.audit import Auditor, Violation
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.model import Budget
from pointsman.services.orchestrator.domain.origin import Origin
from pointsman.services.orchestrator.store import OrchestratorStore
from tests.contract.orchestrator.orchestrators import caller, orchestrator, order
from tests.contract.orchestrator.test_service import reason_of
from tests.scenarios.planes import NOBODY, WISH, plane


async def test_a_run_is_done_again_once_for_a_request_and_both_are_one_story(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, database_url=database_url) as here:
        submitted = await here.submit(labels={"team": "kiwi"}, budget=runs.Budget(assignments=77))
        first = await here.ended(submitted.id)
        request = pb.RerunRequest(
            request_id="again", run_id=first.id, point=pb.RerunPoint(wave=1), text="and keep the flag"
        )
        new = (await here.runs.Rerun(request)).run
        assert (await here.runs.Rerun(request)).run.id == new.id
        assert (new.origin.run_id, new.origin.first_run_id, new.origin.point) == (first.id, first.id, "wave:1")
        assert (new.intent, dict(new.labels), new.budget.assignments) == (
            f"{WISH}\n\nand keep the flag",
            {"team": "kiwi"},
            77,
        )
        done = await here.ended(new.id)
        assert done.state == runs.RUN_STATE_COMPLETE
        assert [task.task_id for task in done.tasks] == [task.task_id for task in first.tasks]
        last = (await here.runs.Rerun(pb.RerunRequest(request_id="more", run_id=new.id))).run
        assert last.origin.first_run_id == first.id
        story = await here.runs.ListRuns(pb.ListRunsRequest(text=first.id))
        assert {run.id for run in story.runs} == {first.id, new.id, last.id}
        listed = await here.runs.ListRuns(pb.ListRunsRequest(view=pb.RUN_VIEW_LINE, id_prefix=last.id))
        assert listed.runs[0].origin.run_id == new.id


async def test_a_point_that_a_run_does_not_have_and_a_run_that_lives_are_refused(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        live = await here.submit()
        assert await reason_of(here.runs.Rerun(pb.RerunRequest(request_id="a", run_id=live.id))) == Reason.STATE_FORBIDS
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=live.id))
        for key, point in (("b", pb.RerunPoint(wave=9)), ("d", pb.RerunPoint(task_id="T77"))):
            wrong = pb.RerunRequest(request_id=key, run_id=live.id, point=point)
            assert await reason_of(here.runs.Rerun(wrong)) == Reason.INVALID_FIELD
        absent = pb.RerunRequest(request_id="e", run_id="run_nope")
        assert await reason_of(here.runs.Rerun(absent)) == Reason.NOT_FOUND
        foreign = here.runs.Rerun(
            pb.RerunRequest(request_id="f", run_id=live.id), metadata=(("pointsman-project", "other"),)
        )
        assert await reason_of(foreign) == Reason.NOT_FOUND


def violations(store: OrchestratorStore) -> list[Violation]:
    proofs = {"run": RunProof(store.store)}
    return store.store.database.read_now(lambda connection: list(Auditor(store.store, proofs).violations(connection)))


async def test_the_audit_says_which_run_goes_on_from_a_commit_that_was_never_accepted(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await store.ledger.submit(caller(), commands.Submit("run_1", "fix it", order(), Budget()))
        forged = Origin("run_1", "run_1", "wave:2", "c" * 40)
        await store.ledger.submit(caller(), commands.Submit("run_2", "fix it", order(origin=forged), Budget()))
        found = [(item.entity_id, item.invariant) for item in violations(store) if item.invariant == "story"]
        assert found == [("run_2", "story")] * 2


async def test_the_new_run_keeps_the_bundle_of_its_accepted_commit(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        bundle = '{"sha256": "' + "b" * 64 + '"}'
        origin = Origin("run_gone", "run_gone", "wave:2", "c" * 40, bundle)
        await store.ledger.submit(caller(), commands.Submit("run_2", "fix it", order(origin=origin), Budget()))
        uses = store.artifacts.uses
        kept = store.store.database.read_now(
            lambda connection: connection.execute(uses.select().where(uses.c.entity_id == "run_2")).all()
        )
        assert [row.sha256 for row in kept] == ["b" * 64]
        assert violations(store) == []
