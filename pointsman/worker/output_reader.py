"""Reads an agent's output files strictly: missing, malformed or contradictory output is an error that says so."""

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeVar

from google.protobuf.message import Message

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.worker import handoff as files
from pointsman.worker import plan_file
from pointsman.worker.git import Captured
from pointsman.worker.json_files import InvalidFile, from_json_object, strict_json

Kind = TypeVar("Kind", bound=Message)
MAX_FILE_BYTES = 1024 * 1024
MAX_TEXT_BYTES = 60_000
MAX_ITEMS = {files.CLAIMS: 1024, files.EVIDENCE: 1024, files.CHANGED_FILES: 4096}
MAX_JUDGE_EVIDENCE = 256
MAX_RESULT_BYTES = 1_500_000
"""What one call can carry, with room for its other fields."""


def read_bytes(folder: Path, name: str) -> bytes:
    """Reads a required output file: a regular file in that folder, not too large."""
    path = folder / name
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InvalidFile(f"{name}: is no plain file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise InvalidFile(
            f"{name}: is missing; the agent has to write it into the folder $POINTSMAN_HANDOFF (docs/agents.md)"
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidFile(f"{name}: is larger than {MAX_FILE_BYTES} bytes")
    return data


def read_text(folder: Path, name: str) -> str:
    """Reads a required text file."""
    try:
        text = read_bytes(folder, name).decode()
    except UnicodeDecodeError:
        raise InvalidFile(f"{name}: is no UTF-8 text") from None
    if not text.strip():
        raise InvalidFile(f"{name}: is empty")
    return text.replace("\0", "")


def document(folder: Path, name: str, *, required: bool = True) -> handoff.Document | None:
    """Reads a text as a document; one that is too long is refused, because half of it would mislead."""
    if not required and not (folder / name).exists():
        return None
    content = read_text(folder, name)
    if len(content.encode()) > MAX_TEXT_BYTES:
        raise InvalidFile(f"{name}: is larger than {MAX_TEXT_BYTES} bytes; leave what matters, not everything")
    return handoff.Document(text=content)


def read_list(folder: Path, name: str, kind: type[Kind]) -> list[Kind]:
    """Reads a file with a list of messages."""
    values = strict_json(read_bytes(folder, name), name)
    if not isinstance(values, list):
        raise InvalidFile(f"{name}: a list is expected")
    if len(values) > MAX_ITEMS[name]:
        raise InvalidFile(f"{name}: has {len(values)} items, more than {MAX_ITEMS[name]}")
    return [from_json_object(value, kind(), f"{name}[{place}]") for place, value in enumerate(values)]


def read_message(folder: Path, name: str, message: Kind) -> Kind:
    """Reads a file with one message."""
    return from_json_object(strict_json(read_bytes(folder, name), name), message, name)


def coder_result(folder: Path, tree: Path, captured: Captured, criteria: Collection[str]) -> handoff.CoderResult:
    """Reads a coder's three files and checks them against each other, the criteria and the changes that git sees."""
    claims = read_list(folder, files.CLAIMS, handoff.Claim)
    evidence = read_list(folder, files.EVIDENCE, handoff.Evidence)
    changed = read_list(folder, files.CHANGED_FILES, handoff.ChangedFile)
    _check_ids(files.CLAIMS, [claim.id for claim in claims])
    _check_ids(files.EVIDENCE, [item.id for item in evidence])
    known = {item.id for item in evidence}
    for claim in claims:
        _check_claim(claim, known, criteria)
    for item in evidence:
        _check_evidence(item, tree)
    _check_changes({file.path for file in changed}, captured)
    made = handoff.CoderResult(
        claims=claims,
        evidence=evidence,
        changed_files=captured.changed_files,
        base_commit=captured.base,
        result_commit=captured.commit,
        tree_hash=captured.tree,
    )
    if made.ByteSize() > MAX_RESULT_BYTES:
        raise InvalidFile(
            f"{files.CLAIMS}, {files.EVIDENCE}: together larger than {MAX_RESULT_BYTES} bytes; shorten them"
        )
    return made


def by_products(folder: Path) -> frozenset[str]:
    """Files that evidence commands created, without those that the agent names as changed."""
    if not (folder / files.BY_PRODUCTS).exists():
        return frozenset()
    values = strict_json(read_bytes(folder, files.BY_PRODUCTS), files.BY_PRODUCTS)
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise InvalidFile(f"{files.BY_PRODUCTS}: a list of paths is expected")
    named = {file.path for file in read_list(folder, files.CHANGED_FILES, handoff.ChangedFile)}
    return frozenset(values) - named


def _check_ids(name: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for one in ids:
        if not one or len(one) > 128:
            raise InvalidFile(f"{name}: an id is missing or longer than 128 characters")
        if one in seen:
            raise InvalidFile(f"{name}: the id {one!r} stands twice")
        seen.add(one)


def _check_claim(claim: handoff.Claim, evidence: Collection[str], criteria: Collection[str]) -> None:
    if not claim.statement:
        raise InvalidFile(f"{files.CLAIMS}: claim {claim.id!r} states nothing")
    for one in claim.evidence_ids:
        if one not in evidence:
            raise InvalidFile(f"{files.CLAIMS}: claim {claim.id!r} names evidence {one!r}, which is not there")
    for one in claim.criterion_ids:
        if one not in criteria:
            raise InvalidFile(f"{files.CLAIMS}: claim {claim.id!r} names criterion {one!r}, which is not there")


def _check_evidence(item: handoff.Evidence, tree: Path) -> None:
    where = f"{files.EVIDENCE}: evidence {item.id!r}"
    if item.kind == handoff.EVIDENCE_KIND_UNSPECIFIED:
        raise InvalidFile(f"{where} has no kind")
    if item.kind == handoff.EVIDENCE_KIND_COMMAND and not item.command:
        raise InvalidFile(f"{where} names no command")
    if item.kind == handoff.EVIDENCE_KIND_FILE:
        actual = file_digest(tree, item.path)
        if actual is None:
            raise InvalidFile(f"{where} names the file {item.path!r}, which is not in the working tree")
        if item.digest and item.digest != actual:
            raise InvalidFile(f"{where} gives another digest than the file {item.path!r} has")


def file_digest(tree: Path, path: str) -> str | None:
    """SHA-256 of a file in a tree; None when the path leads out of the tree or to no regular file."""
    try:
        place = (tree / path).resolve()
        inside = place.is_relative_to(tree.resolve()) and ".git" not in Path(path).parts
        return hashlib.sha256(place.read_bytes()).hexdigest() if inside and place.is_file() else None
    except (OSError, ValueError):
        return None


def _check_changes(named: Collection[str], captured: Captured) -> None:
    seen = {file.path for file in captured.changed_files}
    moved_away = {file.old_path for file in captured.changed_files if file.old_path}
    unchanged = sorted(set(named) - seen - moved_away)
    unnamed = sorted(seen - set(named))
    if unchanged:
        raise InvalidFile(f"{files.CHANGED_FILES}: names files that did not change: {', '.join(unchanged[:20])}")
    if unnamed:
        raise InvalidFile(f"{files.CHANGED_FILES}: leaves out files that changed: {', '.join(unnamed[:20])}")


def review_decision(folder: Path, level: handoff.ReviewLevel.ValueType) -> handoff.ReviewDecision:
    """Reads a reviewer's or a critic's decision."""
    decision = read_message(folder, files.DECISION, handoff.ReviewDecision())
    if decision.decision == handoff.REVIEW_VERDICT_UNSPECIFIED:
        raise InvalidFile(f"{files.DECISION}: decision must be pass, retry or replan")
    if decision.review_level not in (handoff.REVIEW_LEVEL_UNSPECIFIED, level):
        raise InvalidFile(f"{files.DECISION}: review_level is another one than was asked for")
    if decision.decision == handoff.REVIEW_VERDICT_PASS and decision.rejected_claims:
        raise InvalidFile(f"{files.DECISION}: a pass cannot reject claims")
    decision.review_level = level
    if (folder / files.EVIDENCE).exists():
        decision.evidence.extend(read_list(folder, files.EVIDENCE, handoff.Evidence)[:MAX_JUDGE_EVIDENCE])
    return decision


def research_report(folder: Path, agent_id: str, slot: str) -> handoff.ResearchReport:
    """Reads a researcher's files; `analysis_meta.json` may give the confidence."""
    confidence = 0.7
    if (folder / files.META).exists():
        meta = strict_json(read_bytes(folder, files.META), files.META)
        given = meta.get("confidence", confidence) if isinstance(meta, dict) else None
        if not isinstance(given, int | float) or not 0 <= given <= 1:
            raise InvalidFile(f"{files.META}: must be an object whose confidence is between 0 and 1")
        confidence = float(given)
    for name in (files.MEMORY, files.OPERATIONS):
        _check_lines(folder, name)
    return handoff.ResearchReport(
        agent_id=agent_id,
        slot=slot,
        summary_md=document(folder, files.SUMMARY),
        memory_jsonl=document(folder, files.MEMORY),
        analysis_meta=document(folder, files.META, required=False),
        operations=document(folder, files.OPERATIONS, required=False),
        confidence=confidence,
    )


def _check_lines(folder: Path, name: str) -> None:
    if name == files.OPERATIONS and not (folder / name).exists():
        return
    for number, line in enumerate(read_text(folder, name).splitlines(), 1):
        if line.strip() and not isinstance(strict_json(line.encode(), f"{name}:{number}"), dict):
            raise InvalidFile(f"{name}:{number}: an object is expected")


def plan(folder: Path) -> work.Plan:
    """Reads a planner's plan; one that does not fit its schema is refused with all its problems."""
    found = plan_file.problems(strict_json(read_bytes(folder, files.PLAN), files.PLAN))
    if found:
        raise InvalidFile(f"{files.PLAN} does not fit plan.schema.json: {'; '.join(found)}")
    return read_message(folder, files.PLAN, work.Plan())
