"""Writes a handoff as a folder, under the file names of the contract."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from pointsman._shared.files import atomic_write
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1.agent_pb2 import Lease
from pointsman.worker.json_files import to_json_object

PROMPT, USAGE = "prompt.md", "usage.json"
CLAIMS, EVIDENCE, CHANGED_FILES = "claims.json", "evidence.json", "changed_files.json"
BY_PRODUCTS = "by_products.json"
DECISION, ROUTE, PLAN, ANSWERS, DESIGN = (
    "decision.json", "route.json", "plan.json", "answers.json", "detail_design.md",
)  # fmt: skip
SUMMARY, MEMORY, META, OPERATIONS = "summary.md", "memory.jsonl", "analysis_meta.json", "operations.jsonl"
MAX_NAME, DIGEST_LENGTH = 100, 16


def write_handoff(folder: Path, lease: Lease, prompt: str, bodies: Mapping[str, str]) -> None:
    """Writes everything that an agent gets for an assignment; `bodies` has the texts of artifacts by SHA-256."""
    kind = str(lease.WhichOneof("work"))
    work = getattr(lease, kind)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / PROMPT, prompt)
    atomic_write(folder / "request.json", _json(to_json_object(work)))
    if kind in ("stage", "review"):
        _write_bundle(folder, work.handoff, bodies)
    if kind == "stage" and work.node_context_json:
        atomic_write(folder / "node_context.json", work.node_context_json)
    if kind == "review" or (kind == "stage" and work.HasField("coder_result")):
        _write_result(folder / "coder_result", work.coder_result)
    if kind in ("plan", "design"):
        _write_research(folder, work.research, bodies)


def _write_bundle(folder: Path, bundle: handoff.CoderHandoff, bodies: Mapping[str, str]) -> None:
    atomic_write(folder / "master_task.json", _json(to_json_object(bundle.master_task)))
    atomic_write(folder / DESIGN, body_of(bundle.detail_design.design_md, bodies))
    atomic_write(folder / "acceptance_criteria.json", _json(_list(bundle.acceptance_criteria)))
    _write_research(folder, bundle.research_bundle, bodies)


def _write_research(folder: Path, reports: Iterable[handoff.ResearchReport], bodies: Mapping[str, str]) -> None:
    for number, report in enumerate(reports, 1):
        place = folder / "research_bundle" / safe_name(report.slot or str(number))
        for name, document in (
            (SUMMARY, report.summary_md),
            (MEMORY, report.memory_jsonl),
            (META, report.analysis_meta),
            (OPERATIONS, report.operations),
        ):
            text = body_of(document, bodies)
            if text:
                atomic_write(place / name, text)


def _write_result(folder: Path, result: handoff.CoderResult) -> None:
    atomic_write(folder / CLAIMS, _json(_list(result.claims)))
    atomic_write(folder / EVIDENCE, _json(_list(result.evidence)))
    atomic_write(folder / CHANGED_FILES, _json(_list(result.changed_files)))


def body_of(document: handoff.Document, bodies: Mapping[str, str]) -> str:
    """The text of a document, inline or in an artifact."""
    return bodies.get(document.artifact.sha256, "") if document.HasField("artifact") else document.text


def safe_name(name: str) -> str:
    """A safe file name for an untrusted name; different names get different file names."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    safe = safe.lstrip(".")[:MAX_NAME] or "_"
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:DIGEST_LENGTH]}"


def _list(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [to_json_object(message) for message in messages]


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
