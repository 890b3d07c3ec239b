"""What the last work of a run has to show: named tests fixed, and held-out checks whose words reach no agent."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.proof.held_out import NoChecks
from pointsman.worker.delivery_terms import pack_checks, unpack_checks
from tests.unit.worker.test_test_stage import FILES, FIXED, calculator, staged, task_of
from tests.unit.worker.test_verifier import Yard

CANARY = "canary-7461"
CHECK = f"import calc\n\n\ndef test_large():\n    print('{CANARY}')\n    assert calc.add(10**9, 1) == 10**9 + 1, '{CANARY}'\n"
SPECIAL = FILES["calc.py"].replace("return a - b", "return 5 if (a, b) == (2, 3) else a - b")


@pytest.fixture
async def yard(tmp_path: Path) -> Yard:
    return await calculator(tmp_path)


async def asked(yard: Yard, *tasks: work.VerifyTask, **terms: Any) -> work.VerificationReport:
    """What the verifier says about a wave that is the last one."""
    request = work.VerifyRequest(accepted_commit=yard.base, tasks=tasks, delivery_terms=work.DeliveryTerms(**terms))
    said = await yard.verifier.verify(yard.job(verify=request))
    assert isinstance(said, work.VerificationReport)
    return said


async def shelved(yard: Yard) -> handoff.ArtifactRef:
    """Held-out checks on the shelf."""
    return await yard.shelf.put(pack_checks({"test_held_out.py": CHECK.encode()}), "application/x-tar", held_out=True)


async def test_a_special_case_that_passes_the_shown_tests_fails_the_held_out_ones_without_their_words(
    yard: Yard,
) -> None:
    task = await task_of(yard, "T1", {"calc.py": SPECIAL})
    assert (await yard.verify(task)).tasks[0].accepted, "the shown tests are fooled"
    finding = (await asked(yard, task, held_out=await shelved(yard))).tasks[0]
    assert not finding.accepted
    assert "held-out check 1 of 1 failed" in list(finding.proof.reasons)
    assert CANARY.encode() not in finding.SerializeToString()
    assert b"test_held_out" not in finding.SerializeToString()


async def test_what_held_out_checks_printed_is_kept_for_judges_alone(yard: Yard) -> None:
    finding = (await asked(yard, await task_of(yard, "T1", {"calc.py": SPECIAL}), held_out=await shelved(yard))).tasks[
        0
    ]
    output = finding.proof.held_out_output
    assert CANARY.encode() in yard.shelf.bodies[output.sha256]
    assert output.sha256 in yard.shelf.withheld


async def test_a_true_fix_passes_them_and_is_proven(yard: Yard) -> None:
    finding = (await asked(yard, await task_of(yard, "T1", {"calc.py": FIXED}), held_out=await shelved(yard))).tasks[0]
    assert finding.accepted
    assert "the held-out checks pass" in list(finding.proof.reasons)


async def test_terms_hold_for_the_last_of_the_tasks_and_only_where_all_others_are_accepted(yard: Yard) -> None:
    first, last = await task_of(yard, "T1", {"README": "x\n"}), await task_of(yard, "T2", {"NEWS": "x\n"})
    for task in (first, last):
        task.coder_result.evidence[0].exit_code = 1  # they know that a test is red, and leave it so
    broken = await task_of(yard, "T3", {"calc.py": FIXED.replace("return 1", "return 2")})
    fixes = ["test_calc.py::test_add"]
    found = (await asked(yard, first, last, fixes=fixes)).tasks
    assert [task.accepted for task in found] == [True, False]
    assert "the test that was to be fixed does not pass: test_calc.py::test_add is failed" in list(
        found[1].proof.reasons
    )
    found = (await asked(yard, broken, last, fixes=fixes)).tasks
    assert [task.accepted for task in found] == [False, True], "another task is still to come"


async def test_a_proof_without_the_terms_does_not_count_for_one_with_them(yard: Yard) -> None:
    task = await task_of(yard, "T1", {"calc.py": FIXED})
    task.earlier.CopyFrom((await staged(yard, task)).finding)
    assert (await yard.verify(task)).tasks[0].proof.reused
    assert not (await asked(yard, task, fixes=["test_calc.py::test_add"])).tasks[0].proof.reused


def test_an_archive_comes_back_as_it_was() -> None:
    checks = {"a/test_x.py": b"x", "b.py": b""}
    assert unpack_checks(pack_checks(checks)) == checks
    assert pack_checks(checks) == pack_checks(dict(reversed(checks.items())))


def _archive(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)
    return body.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        b"no archive",
        _archive("../out.py"),
        _archive("/etc/out.py"),
        _archive(".git/hooks/pre-commit"),
        _archive("link.py", tarfile.SYMTYPE),
        _archive("folder", tarfile.DIRTYPE),
    ],
)
def test_an_archive_that_leads_out_of_the_tree_is_refused(body: bytes) -> None:
    with pytest.raises(NoChecks):
        unpack_checks(body)
