"""Best of N over gRPC, on both databases: every work is proven and stays, and one is chosen."""

from pathlib import Path

from pointsman.api.orchestrator.v1 import evidence_pb2 as evidence
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.audit.stores import audit_stores
from pointsman.services.chassis.core.config import StoreSettings
from tests.scenarios.planes import Plane, plane

PROOFS = [runs.VerifyCommand(arguments=["make", "test"])]
THREE = pb.Crew(best_of=3)


async def contenders(here: Plane, run_id: str) -> list[evidence.Contender]:
    (attempt,) = (await here.runs.GetEvidence(evidence.GetEvidenceRequest(run_id=run_id))).attempts
    return sorted(attempt.contenders, key=lambda one: one.number)


async def test_every_work_is_proven_and_shown_and_one_of_them_is_delivered(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, database_url=database_url) as here:
        alone = await here.ended((await here.submit(verify_commands=PROOFS)).id)
        run = await here.ended((await here.submit(verify_commands=PROOFS, crew=THREE)).id)
        assert (run.state, run.best_of) == (runs.RUN_STATE_COMPLETE, 3)
        assert run.usage.assignments == alone.usage.assignments + 2
        found = await contenders(here, run.id)
        assert [(one.number, one.finding.accepted) for one in found] == [(1, True), (2, True), (3, True)]
        assert sum(one.chosen for one in found) == 1
        assert all(one.work.claims for one in found)
        assert (await contenders(here, alone.id)) == []
    stores = StoreSettings(data=tmp_path, database_url=database_url if database_url.startswith("postgres") else "")
    found_wrong = [item for one in (await audit_stores(stores, 0.1)).values() for item in one.violations]
    assert found_wrong == []
