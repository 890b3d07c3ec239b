"""Checks evidence on one tree: repeats it where that is possible, rejects it where it proves nothing."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.sandbox import CommandResult
from pointsman.worker.output_reader import file_digest

ALLOWED_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("pytest",), ("python", "-m", "pytest"), ("python3", "-m", "pytest"), ("python", "-m", "unittest"),
    ("python3", "-m", "unittest"), ("python", "-m", "compileall"), ("python3", "-m", "compileall"), ("tox",), ("nox",),
    ("ruff", "check"), ("mypy",), ("make", "test"), ("make", "check"), ("npm", "test"), ("npm", "run", "test"),
    ("yarn", "test"), ("pnpm", "test"), ("cargo", "test"), ("cargo", "check"), ("go", "test"), ("go", "vet"),
)  # fmt: skip
MAX_REPORT_BYTES = 4 * 1024 * 1024
DETAIL_LENGTH = 1000

SUPPORTED, UNSUPPORTED, STALE, MISSING = (
    work.CLAIM_STATUS_SUPPORTED, work.CLAIM_STATUS_UNSUPPORTED, work.CLAIM_STATUS_STALE, work.CLAIM_STATUS_MISSING,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class VerificationTarget:
    """The tree on which evidence is checked."""

    tree: Path
    tree_hash: str
    diff_digest: str
    commands: frozenset[tuple[str, ...]]
    """Commands of criteria and constraints, which the verifier runs in any case."""
    run: Callable[[Sequence[str]], Awaitable[CommandResult]]
    """Runs a command, or returns its earlier result."""
    run_anew: Callable[[Sequence[str]], Awaitable[CommandResult]]
    """Runs a command in the tree, whatever ran before."""
    excused: frozenset[tuple[str, ...]] = frozenset()
    """Commands whose failing tests failed on the base as well, so that their exit code says nothing new."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking one piece of evidence."""

    status: work.ClaimStatus.ValueType
    detail: str = ""


def is_allowed(command: Sequence[str], target: VerificationTarget) -> bool:
    """Whether the verifier runs a command that the author chose."""
    given = tuple(command)
    return given in target.commands or any(given[: len(prefix)] == prefix for prefix in ALLOWED_COMMANDS)


REPEATABLE_KINDS = frozenset({handoff.EVIDENCE_KIND_COMMAND, handoff.EVIDENCE_KIND_TEST_REPORT})
"""Kinds of evidence that are checked by running their command again."""


async def check_evidence(item: handoff.Evidence, target: VerificationTarget) -> Finding:
    """Checks one piece of evidence."""
    if item.kind == handoff.EVIDENCE_KIND_COMMAND:
        return await _check_command(item, target)
    if item.kind == handoff.EVIDENCE_KIND_TEST_REPORT:
        return await _check_report(item, target)
    return _check_file(item, target) if item.kind == handoff.EVIDENCE_KIND_FILE else _check_unrepeatable(item, target)


def _check_unrepeatable(item: handoff.Evidence, target: VerificationTarget) -> Finding:
    """Notes, pages and diffs support nothing alone; a diff of other work contradicts."""
    if item.kind == handoff.EVIDENCE_KIND_DIFF:
        if item.tree_hash == target.tree_hash and item.digest != target.diff_digest:
            return Finding(UNSUPPORTED, f"{item.id} is not the diff of this work")
        return Finding(STALE, f"{item.id} is a diff, which shows what changed and not that it works")
    kind = "a page" if item.kind == handoff.EVIDENCE_KIND_URL else "a note"
    return Finding(STALE, f"{item.id} is {kind}, which proves nothing alone")


async def _check_command(item: handoff.Evidence, target: VerificationTarget) -> Finding:
    shown = " ".join(item.command)
    if not is_allowed(item.command, target):
        return Finding(UNSUPPORTED, f"{item.id}: `{shown}` is no command that the verifier runs")
    ended = await target.run(item.command)
    if ended.ok and item.exit_code == 0:
        return Finding(SUPPORTED)
    if item.exit_code != 0 and tuple(item.command) in target.excused and ended.exit_code == item.exit_code:
        return Finding(SUPPORTED, f"{item.id}: `{shown}` fails only where it failed before")
    if item.exit_code == 0:
        return Finding(UNSUPPORTED, f"{item.id} says that `{shown}` ended with 0, but here {ended.reason}")
    return Finding(UNSUPPORTED, f"{item.id}: `{shown}` failed, as its own exit code {item.exit_code} says")


def _check_file(item: handoff.Evidence, target: VerificationTarget) -> Finding:
    actual = file_digest(target.tree, item.path)
    if actual is None:
        return Finding(UNSUPPORTED, f"{item.id}: there is no file {item.path!r}")
    if item.digest != actual:
        return Finding(UNSUPPORTED, f"{item.id}: the file {item.path!r} has another content than was said")
    return Finding(SUPPORTED)


async def _check_report(item: handoff.Evidence, target: VerificationTarget) -> Finding:
    """A report counts when its command, run here and now, writes it and ends with 0."""
    if not item.command:
        return Finding(STALE, f"{item.id} names no command that makes the report again")
    if not is_allowed(item.command, target):
        return Finding(UNSUPPORTED, f"{item.id}: `{' '.join(item.command)}` is no command that the verifier runs")
    if file_digest(target.tree, item.path) is not None:
        (target.tree / item.path).unlink()
    ended = await target.run_anew(item.command)
    problem = junit_problem(target.tree, item.path)
    if not problem and not ended.ok:
        problem = f"`{' '.join(item.command)}`: {ended.reason}"
    return Finding(UNSUPPORTED, f"{item.id}: {problem}") if problem else Finding(SUPPORTED)


def junit_problem(tree: Path, path: str) -> str:
    """Why a JUnit report does not prove success; empty when it does."""
    if file_digest(tree, path) is None:
        return f"there is no report {path!r}"
    data = (tree / path).read_bytes()
    if len(data) > MAX_REPORT_BYTES or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return f"the report {path!r} is too large or declares entities"
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 - without a document type there is nothing to expand
    except ElementTree.ParseError as error:
        return f"the report {path!r} is no XML: {error}"
    cases = list(root.iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    if failed:
        return f"{len(failed)} of {len(cases)} tests failed, first {failed[0].get('name', '?')}"
    return "" if cases else f"the report {path!r} has no test in it"


def check_claim(
    claim: handoff.Claim, findings: Mapping[str, Finding], failed_criteria: Collection[str]
) -> work.ClaimFinding:
    """A claim is unsupported if one piece contradicts it, stale if no piece counts, missing if it has no evidence."""
    if not claim.evidence_ids:
        return work.ClaimFinding(claim_id=claim.id, status=MISSING, detail="no evidence")
    found = [findings[key] for key in claim.evidence_ids if key in findings]
    found += [Finding(UNSUPPORTED, f"{key} does not hold") for key in claim.criterion_ids if key in failed_criteria]
    for status in (UNSUPPORTED, SUPPORTED):
        these = [finding.detail for finding in found if finding.status == status]
        if these:
            return work.ClaimFinding(claim_id=claim.id, status=status, detail="; ".join(these)[:DETAIL_LENGTH])
    detail = "; ".join(finding.detail for finding in found)[:DETAIL_LENGTH]
    return work.ClaimFinding(claim_id=claim.id, status=STALE, detail=detail or "its evidence is not there")


def diff_digest(diff: bytes) -> str:
    """The digest of a diff."""
    return hashlib.sha256(diff).hexdigest()
