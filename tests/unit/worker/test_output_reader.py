"""Missing, malformed or contradictory output is a failure that names itself."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.worker import output_reader
from pointsman.worker.git import Captured
from pointsman.worker.json_files import InvalidFile, from_json_object, strict_json, to_json_object

CLAIM = {"id": "C1", "statement": "it works", "criterion_ids": ["T1-C1"], "evidence_ids": ["E1"]}
EVIDENCE = {"id": "E1", "kind": "COMMAND", "command": ["true"], "exit_code": 0}
CHANGED = {"path": "a.py", "change": "MODIFIED"}
CAPTURED = Captured(
    "b" * 40, "c" * 40, "d" * 40, (handoff.ChangedFile(path="a.py", change=handoff.FILE_CHANGE_MODIFIED),)
)


def left(folder: Path, **files: Any) -> Path:
    given = {"claims": [CLAIM], "evidence": [EVIDENCE], "changed_files": [CHANGED], **files}
    for name, value in given.items():
        if value is not None:
            (folder / f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def collected(folder: Path) -> handoff.CoderResult:
    return output_reader.coder_result(folder, folder, CAPTURED, {"T1-C1"})


def test_three_files_that_agree_are_taken(tmp_path: Path) -> None:
    result = collected(left(tmp_path))
    assert result.claims[0].id == "C1"
    assert result.evidence[0].kind == handoff.EVIDENCE_KIND_COMMAND
    assert (result.base_commit, result.result_commit, result.tree_hash) == ("b" * 40, "c" * 40, "d" * 40)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "claims are missing": ({"claims": None}, "claims.json: is missing"),
    "evidence is missing": ({"evidence": None}, "evidence.json: is missing"),
    "changed files are missing": ({"changed_files": None}, "changed_files.json: is missing"),
    "no JSON": ({"claims": "[{"}, "claims.json"),
    "no list": ({"claims": {}}, "a list is expected"),
    "no object": ({"claims": ["x"]}, "an object is expected"),
    "a name twice": ({"evidence": '[{"id":"E1","kind":"COMMAND","command":["x"],"exit_code":1,"exit_code":0}]'}, "stands twice"),
    "an unknown field": ({"claims": [{**CLAIM, "verdict": "pass"}]}, "verdict"),
    "a wrong type": ({"evidence": [{**EVIDENCE, "exit_code": "zero"}]}, "exit"),
    "NaN": ({"evidence": '[{"id":"E1","kind":"COMMAND","exit_code":NaN}]'}, "NaN"),
    "an unknown kind": ({"evidence": [{**EVIDENCE, "kind": "MIRACLE"}]}, "MIRACLE"),
    "a kind by number": ({"evidence": [{**EVIDENCE, "kind": 1}]}, "by its name"),
    "no kind": ({"evidence": [{"id": "E1"}]}, "has no kind"),
    "no command": ({"evidence": [{"id": "E1", "kind": "COMMAND"}]}, "names no command"),
    "an id twice": ({"claims": [CLAIM, CLAIM]}, "stands twice"),
    "no id": ({"claims": [{**CLAIM, "id": ""}]}, "an id is missing"),
    "no statement": ({"claims": [{**CLAIM, "statement": ""}]}, "states nothing"),
    "evidence that is not there": ({"claims": [{**CLAIM, "evidence_ids": ["E9"]}]}, "'E9', which is not there"),
    "a criterion that is not there": ({"claims": [{**CLAIM, "criterion_ids": ["X"]}]}, "'X', which is not there"),
    "a file it did not change": ({"changed_files": [CHANGED, {"path": "b.py", "change": "ADDED"}]}, "did not change: b.py"),
    "a file it keeps silent about": ({"changed_files": []}, "leaves out files that changed: a.py"),
    "a file that is not in the tree": ({"evidence": [{"id": "E1", "kind": "FILE", "path": "nope"}]}, "not in the working tree"),
    "a file outside the tree": ({"evidence": [{"id": "E1", "kind": "FILE", "path": "../../etc/passwd"}]}, "not in the working tree"),
    "another digest than the file has": (
        {"evidence": [{"id": "E1", "kind": "FILE", "path": "claims.json", "digest": "0" * 64}]},
        "another digest",
    ),
    "NUL in a text": ({"claims": [{**CLAIM, "statement": "a\0b"}]}, "NUL"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_output_is_refused_with_its_reason_for(case: str, tmp_path: Path) -> None:
    files, reason = REFUSED[case]
    with pytest.raises(InvalidFile, match=reason.replace("(", r"\(")):
        collected(left(tmp_path, **files))


def test_a_link_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    left(tmp_path, claims=None)
    (tmp_path / "claims.json").symlink_to("/etc/hostname")
    with pytest.raises(InvalidFile, match="no plain file"):
        collected(tmp_path)


def test_deeply_nested_json_is_refused() -> None:
    with pytest.raises(InvalidFile, match=r"deep|recursion"):
        strict_json(b"[" * 5000 + b"]" * 5000, "x")
    with pytest.raises(InvalidFile, match="deep"):
        strict_json(b"[" * 70 + b"]" * 70, "x")


def test_a_message_survives_the_way_to_plain_json_and_back() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    message = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_FILE, path="a", digest=digest)
    assert to_json_object(message)["kind"] == "FILE"
    assert from_json_object(to_json_object(message), handoff.Evidence(), "x") == message


def test_a_decision_that_passes_and_rejects_contradicts_itself(tmp_path: Path) -> None:
    (tmp_path / "decision.json").write_text(json.dumps({"decision": "pass", "rejected_claims": ["C1"]}))
    with pytest.raises(InvalidFile, match="a pass cannot reject"):
        output_reader.review_decision(tmp_path, handoff.REVIEW_LEVEL_EXECUTOR)


def test_a_decision_must_say_something(tmp_path: Path) -> None:
    (tmp_path / "decision.json").write_text("{}")
    with pytest.raises(InvalidFile, match="pass, retry or replan"):
        output_reader.review_decision(tmp_path, handoff.REVIEW_LEVEL_EXECUTOR)


def test_a_report_needs_its_summary_and_a_readable_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.jsonl").write_text('{"a": 1}\n{"b": 2}\n')
    with pytest.raises(InvalidFile, match=r"summary\.md: is missing"):
        output_reader.research_report(tmp_path, "r", "s")
    (tmp_path / "summary.md").write_text("found\n")
    assert output_reader.research_report(tmp_path, "r", "s").memory_jsonl.text.count("\n") == 2
    (tmp_path / "memory.jsonl").write_text('{"a": 1}\nnot json\n')
    with pytest.raises(InvalidFile, match=r"memory\.jsonl:2"):
        output_reader.research_report(tmp_path, "r", "s")


def test_a_text_that_is_too_large_is_refused_by_name_and_never_cut(tmp_path: Path) -> None:
    (tmp_path / "memory.jsonl").write_text('{"a": 1}\n' * 10_000)
    with pytest.raises(InvalidFile, match=r"memory\.jsonl: is larger than 60000 bytes"):
        output_reader.document(tmp_path, "memory.jsonl")


def test_five_hundred_claims_are_taken_also_with_one_that_names_no_evidence(tmp_path: Path) -> None:
    claims = [{**CLAIM, "id": f"C{number}"} for number in range(499)]
    result = collected(left(tmp_path, claims=[*claims, {**CLAIM, "id": "BARE", "evidence_ids": []}]))
    assert [claim.id for claim in result.claims if not claim.evidence_ids] == ["BARE"]


def test_more_claims_than_a_call_can_carry_are_refused_with_their_number(tmp_path: Path) -> None:
    many = [{**CLAIM, "id": f"C{number}"} for number in range(1025)]
    with pytest.raises(InvalidFile, match=r"claims.json: has 1025 items, more than 1024"):
        collected(left(tmp_path, claims=many))
    evidence = [{**EVIDENCE, "id": f"E{number}", "excerpt": "x" * 2000} for number in range(1, 451)]
    claims = [{**CLAIM, "id": f"C{number}", "statement": "y" * 2000} for number in range(450)]
    with pytest.raises(InvalidFile, match="together larger than"):
        collected(left(tmp_path, evidence=evidence, claims=claims))
