"""The verifier's TEST stage: a proof of one task, its failing tests for the coder, and no second run for the same tree."""

from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import proof_pb2 as proofs
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.proof.execution import CommandRunner
from pointsman.worker import Verifier, Workspace
from pointsman.worker.stage_verdict import SUMMARY_LENGTH, stage_verdict
from tests.unit.worker.repositories import clone_of, repository
from tests.unit.worker.test_verifier import Shelf, Yard

PYTEST = ("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider")
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef one():\n    return 1\n",
    "test_calc.py": "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n\n\ndef test_one():\n    assert calc.one() == 1\n",
}
FIXED = FILES["calc.py"].replace("a - b", "a + b")
BROKEN = FIXED.replace("return 1", "return 2")


async def calculator(tmp_path: Path) -> Yard:
    """A repository with a red and a green test, a coder and a verifier."""
    base = await repository(tmp_path / "user", FILES)
    coder = await clone_of(tmp_path / "user", tmp_path / "coder")
    workspace = Workspace(tmp_path / "verifier", {"repo": tmp_path / "user"})
    return Yard(base, coder, Verifier(workspace), Shelf(base), tmp_path)


@pytest.fixture
async def yard(tmp_path: Path) -> Yard:
    return await calculator(tmp_path)


async def task_of(yard: Yard, name: str, files: dict[str, str]) -> work.VerifyTask:
    """A task that pytest proves."""
    task = await yard.task(name, files, command=PYTEST)
    task.acceptance_criteria[0].verify_command[:] = PYTEST
    return task


async def staged(yard: Yard, task: work.VerifyTask) -> work.StageResult:
    """What the verifier says in the TEST stage of a task."""
    request = work.VerifyRequest(accepted_commit=yard.base, tasks=[task])
    job = yard.job(stage=work.StageRequest(stage="TEST", verify=request))
    job.assignment.purpose = assignments.PURPOSE_STAGE
    said = await yard.verifier.verify(job)
    assert isinstance(said, work.StageResult)
    return said


async def test_a_fix_passes_with_its_results_test_by_test(yard: Yard) -> None:
    said = await staged(yard, await task_of(yard, "T1", {"calc.py": FIXED}))
    tests = {test.id: (test.before, test.outcome) for test in said.finding.proof.commands[0].tests}
    assert (said.route.verdict, said.finding.proof.grade) == ("PASS", proofs.GRADE_PROVEN)
    assert tests == {"test_calc.py::test_add": (proofs.TEST_OUTCOME_FAILED, proofs.TEST_OUTCOME_PASSED)}


async def test_a_failure_goes_back_with_the_tests_that_fail_and_what_they_said(yard: Yard) -> None:
    said = await staged(yard, await task_of(yard, "T1", {"calc.py": BROKEN}))
    summary = said.report_md.text.partition("\n\n")[0]
    assert said.route.verdict == "FAIL"
    assert summary.startswith(said.route.hint)
    assert "FAILED test_calc.py::test_one: " in summary
    assert "assert 2 == 1" in summary


async def test_the_same_tree_over_the_same_base_is_proven_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await task_of(yard, "T1", {"calc.py": FIXED})
    task.earlier.CopyFrom((await staged(yard, task)).finding)

    async def nothing(*_: object) -> None:
        raise AssertionError("a proof that counts again runs nothing")

    monkeypatch.setattr(CommandRunner, "run", nothing)
    report = await yard.verify(task)
    assert report.tasks[0].accepted
    assert report.tasks[0].proof.reused
    assert report.tasks[0].proof.commands == task.earlier.proof.commands
    assert report.accepted_commit != yard.base


async def test_a_proof_of_anything_else_is_made_anew(yard: Yard) -> None:
    task = await task_of(yard, "T1", {"calc.py": FIXED})
    found = (await staged(yard, task)).finding
    other = await task_of(yard, "T2", {"calc.py": BROKEN})
    other.earlier.CopyFrom(found)
    changed = work.VerifyTask()
    changed.CopyFrom(task)
    changed.earlier.CopyFrom(found)
    changed.tests_may_change = True
    refused = work.VerifyTask()
    refused.CopyFrom(task)
    refused.earlier.CopyFrom(found)
    refused.earlier.accepted = False
    for one in (other, changed, refused):
        report = await yard.verify(one)
        assert not report.tasks[0].proof.reused, one.task_id
    assert not (await yard.verify(other)).tasks[0].accepted


def test_a_long_failure_keeps_its_first_words_its_end_and_the_failure_itself() -> None:
    long = "x" * 5000 + "\nE   assert 1 == 2\n" + "y" * 5000 + "\nthe end"
    tests = [
        proofs.TestResult(
            id="t::one", outcome=proofs.TEST_OUTCOME_FAILED, before=proofs.TEST_OUTCOME_PASSED, message=long[:2048]
        )
    ]
    proof = proofs.Proof(reasons=["tests passed on the base and fail"], commands=[proofs.ProofCommand(tests=tests)])
    criterion = work.CriterionFinding(criterion_id="V1", detail="assert 1 == 2")
    said = stage_verdict(work.TaskFinding(task_id="T1", proof=proof, criteria=[criterion]))
    summary = said.report_md.text.partition("\n\n")[0]
    assert len(summary) <= SUMMARY_LENGTH
    assert summary.startswith("tests passed on the base and fail\nFAILED t::one: x")
    assert "## V1" in said.report_md.text


def test_a_failure_that_is_a_traceback_begins_with_its_error() -> None:
    message = 'Traceback (most recent call last):\n  File "t.py", line 1, in t\nAssertionError: 0 != 2\n'
    test = proofs.TestResult(id="t", outcome=proofs.TEST_OUTCOME_FAILED, message=message)
    proof = proofs.Proof(commands=[proofs.ProofCommand(tests=[test])])
    said = stage_verdict(work.TaskFinding(task_id="T1", proof=proof))
    assert said.report_md.text.startswith("FAILED t: AssertionError: 0 != 2\nTraceback (most recent call last):\n")


def test_a_failure_without_tests_says_what_of_the_work_does_not_hold() -> None:
    claim = work.ClaimFinding(claim_id="C1", status=work.CLAIM_STATUS_MISSING, detail="no evidence")
    said = stage_verdict(work.TaskFinding(task_id="T1", claims=[claim], conflicts=["calc.py"]))
    assert said.route.severity == handoff.SEVERITY_HIGH
    assert said.report_md.text == "conflict in calc.py\nclaim C1 is missing: no evidence"
