"""What evidence is worth on the accepted tree, kind by kind; what a claim is worth by its evidence."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.sandbox import CommandResult, EndedBy
from pointsman.worker import evidence_check
from pointsman.worker.evidence_check import MISSING, STALE, SUPPORTED, UNSUPPORTED, Finding, VerificationTarget

HERE, ELSEWHERE = "a" * 40, "b" * 40
GREEN = "<testsuite><testcase name='x'/></testsuite>"
RED = "<testsuite><testcase name='x'><failure/></testcase></testsuite>"


def target(tree: Path, exit_code: int = 0, report: str = "") -> VerificationTarget:
    async def run(_command: Sequence[str]) -> CommandResult:
        if report:
            (tree / "junit.xml").write_text(report)
        return CommandResult(exit_code, EndedBy.ITSELF, b"out", "")

    return VerificationTarget(tree, HERE, "d" * 64, frozenset({("./check.sh",)}), run, run)


def command(*words: str, exit_code: int = 0) -> handoff.Evidence:
    return handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_COMMAND, command=words, exit_code=exit_code)


@pytest.mark.parametrize(
    ("evidence", "exit_code", "expected"),
    [
        (command("pytest", "-q"), 0, SUPPORTED),
        (command("pytest", "-q"), 1, UNSUPPORTED),
        (command("pytest", exit_code=1), 1, UNSUPPORTED),
        (command("./check.sh"), 0, SUPPORTED),
        (command("true"), 0, UNSUPPORTED),
        (command("sh", "-c", "exit 0"), 0, UNSUPPORTED),
        (command("python3", "-c", "pass"), 0, UNSUPPORTED),
        (command("python3", "-m", "unittest"), 0, SUPPORTED),
    ],
)
async def test_a_command_counts_by_its_new_result_and_only_if_it_may_run(
    evidence: handoff.Evidence, exit_code: int, expected: int, tmp_path: Path
) -> None:
    assert (await evidence_check.check_evidence(evidence, target(tmp_path, exit_code))).status == expected


async def test_a_lie_about_an_exit_code_is_named(tmp_path: Path) -> None:
    finding = await evidence_check.check_evidence(command("pytest"), target(tmp_path, exit_code=2))
    assert "says that `pytest` ended with 0, but here it ended with exit code 2" in finding.detail


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.txt", b"x", SUPPORTED),
        ("a.txt", b"y", UNSUPPORTED),
        ("none", b"x", UNSUPPORTED),
        ("../a", b"x", UNSUPPORTED),
    ],
)
async def test_a_file_must_be_there_with_the_content_that_was_said(
    path: str, content: bytes, expected: int, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(b"x")
    digest = hashlib.sha256(content).hexdigest()
    evidence = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_FILE, path=path, digest=digest)
    assert (await evidence_check.check_evidence(evidence, target(tmp_path))).status == expected


@pytest.mark.parametrize("kind", [handoff.EVIDENCE_KIND_DIFF, handoff.EVIDENCE_KIND_URL, handoff.EVIDENCE_KIND_NOTE])
async def test_what_cannot_be_taken_again_does_not_count_from_another_tree(
    kind: handoff.EvidenceKind.ValueType, tmp_path: Path
) -> None:
    evidence = handoff.Evidence(id="E1", kind=kind, tree_hash=ELSEWHERE)
    assert (await evidence_check.check_evidence(evidence, target(tmp_path))).status == STALE


@pytest.mark.parametrize("kind", [handoff.EVIDENCE_KIND_NOTE, handoff.EVIDENCE_KIND_URL])
async def test_a_note_or_a_page_supports_nothing_alone(kind: handoff.EvidenceKind.ValueType, tmp_path: Path) -> None:
    evidence = handoff.Evidence(id="E1", kind=kind, tree_hash=HERE)
    assert (await evidence_check.check_evidence(evidence, target(tmp_path))).status == STALE


async def test_a_failure_that_the_base_has_too_is_excused_to_who_admits_it(tmp_path: Path) -> None:
    excusing = replace(target(tmp_path, exit_code=1), excused=frozenset({("pytest",)}))
    admitted = await evidence_check.check_evidence(command("pytest", exit_code=1), excusing)
    denied = await evidence_check.check_evidence(command("pytest", exit_code=0), excusing)
    assert (admitted.status, denied.status) == (SUPPORTED, UNSUPPORTED)


@pytest.mark.parametrize(("digest", "expected"), [("d" * 64, STALE), ("e" * 64, UNSUPPORTED)])
async def test_a_diff_must_be_the_one_of_this_work(digest: str, expected: int, tmp_path: Path) -> None:
    evidence = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_DIFF, tree_hash=HERE, digest=digest)
    assert (await evidence_check.check_evidence(evidence, target(tmp_path))).status == expected


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (GREEN, SUPPORTED),
        (RED, UNSUPPORTED),
        ("<testsuite/>", UNSUPPORTED),
        ("no xml", UNSUPPORTED),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]>" + GREEN, UNSUPPORTED),
    ],
)
async def test_a_test_report_proves_success_only_with_green_tests_in_it(
    report: str, expected: int, tmp_path: Path
) -> None:
    assert (await evidence_check.check_evidence(REPORT, target(tmp_path, report=report))).status == expected


REPORT = handoff.Evidence(
    id="E1", kind=handoff.EVIDENCE_KIND_TEST_REPORT, path="junit.xml", tree_hash=HERE, command=["pytest"]
)


async def test_a_report_counts_only_when_its_command_writes_it_now_and_ends_well(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(GREEN)
    assert (await evidence_check.check_evidence(REPORT, target(tmp_path))).status == UNSUPPORTED
    failed = await evidence_check.check_evidence(REPORT, target(tmp_path, exit_code=1, report=GREEN))
    assert (failed.status, "exit code 1" in failed.detail) == (UNSUPPORTED, True)


async def test_a_report_from_another_tree_that_cannot_be_made_again_is_stale(tmp_path: Path) -> None:
    evidence = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_TEST_REPORT, path="junit.xml", tree_hash=ELSEWHERE)
    assert (await evidence_check.check_evidence(evidence, target(tmp_path))).status == STALE


GOOD, BAD, OLD = Finding(SUPPORTED), Finding(UNSUPPORTED, "no"), Finding(STALE, "old")


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([], MISSING),
        ([GOOD], SUPPORTED),
        ([GOOD, OLD], SUPPORTED),
        ([GOOD, BAD], UNSUPPORTED),
        ([OLD, BAD], UNSUPPORTED),
        ([OLD], STALE),
    ],
)
def test_a_claim_is_worth_what_its_evidence_is(findings: list[Finding], expected: int) -> None:
    named = {f"E{place}": finding for place, finding in enumerate(findings)}
    claim = handoff.Claim(id="C1", evidence_ids=list(named))
    assert evidence_check.check_claim(claim, named, ()).status == expected


def test_a_claim_about_a_criterion_whose_command_fails_is_unsupported() -> None:
    claim = handoff.Claim(id="C1", evidence_ids=["E1"], criterion_ids=["T1-C1"])
    finding = evidence_check.check_claim(claim, {"E1": GOOD}, {"T1-C1"})
    assert finding.status == UNSUPPORTED
    assert "T1-C1 does not hold" in finding.detail
