"""The handoff folder: what an agent gets for an assignment, under the file names of the contract."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from pointsman._shared.files import atomic_write
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1.agent_pb2 import Lease
from pointsman.api.orchestrator.v1.assignment_pb2 import CAPABILITY_DESIGN, PURPOSE_PATCH, PURPOSE_PLAN
from pointsman.worker.json_files import to_json_object
from pointsman.worker.plan_file import schema_text
from pointsman.worker.quoting import quote_document

PROMPT, USAGE = "prompt.md", "usage.json"
CLAIMS, EVIDENCE, CHANGED_FILES = "claims.json", "evidence.json", "changed_files.json"
EARLIER_DESIGN = "earlier_design.md"
FINDING = "verifier_finding.json"
BY_PRODUCTS = "by_products.json"
DECISION, ROUTE, PLAN, ANSWERS, DESIGN = (
    "decision.json", "route.json", "plan.json", "answers.json", "detail_design.md",
)  # fmt: skip
SUMMARY, MEMORY, META, OPERATIONS = "summary.md", "memory.jsonl", "analysis_meta.json", "operations.jsonl"
MAX_NAME, DIGEST_LENGTH = 100, 16


@dataclass(frozen=True, slots=True)
class HandoffFile:
    """One file of the folder; `about` says what it is and who wrote it."""

    path: str
    about: str
    text: str = ""


THE_PROMPT = HandoffFile(PROMPT, "this page")


def handoff_files(lease: Lease, bodies: Mapping[str, str]) -> list[HandoffFile]:
    """What an agent gets beside its prompt; `bodies` has the texts of artifacts by SHA-256."""
    kind = str(lease.WhichOneof("work"))
    asked = getattr(lease, kind)
    found = [HandoffFile("request.json", "the whole request, typed; its texts are others' words", _json(asked))]
    if kind in ("stage", "review"):
        # A designer leaves a file of the same name: what it was given must not pass for its own.
        designs = lease.assignment.capability == CAPABILITY_DESIGN
        found += _bundle(asked.handoff, bodies, EARLIER_DESIGN if designs else DESIGN)
    if kind == "stage" and asked.node_context_json:
        about = "the stage's neighbours, and why it is tried again"
        found.append(HandoffFile("node_context.json", about, asked.node_context_json))
    if kind == "review" or (kind == "stage" and asked.HasField("coder_result")):
        found += _coder_result(asked.coder_result)
    if kind in ("stage", "review") and asked.HasField("finding"):
        about = "what the verifier ran itself on this work, test by test, with the tests of the base"
        found.append(HandoffFile(FINDING, about, _json(asked.finding)))
    if kind in ("plan", "design"):
        found += _research(asked.research, bodies)
    if lease.assignment.purpose in (PURPOSE_PLAN, PURPOSE_PATCH):
        found.append(HandoffFile("plan.schema.json", "the JSON schema that plan.json has to fit", schema_text()))
    return found


def survey_file(survey: str) -> HandoffFile:
    """A survey of the repository, for a planner."""
    about = "the repository at a glance: files, latest commits, how it is tested; quoted"
    return HandoffFile("survey.md", about, quote_document(survey, "the repository"))


def write_handoff(folder: Path, prompt: str, contents: Sequence[HandoffFile]) -> None:
    """Writes the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / PROMPT, prompt)
    for file in contents:
        atomic_write(folder / file.path, file.text)


def _bundle(bundle: handoff.CoderHandoff, bodies: Mapping[str, str], design_name: str) -> Iterator[HandoffFile]:
    about = "the task, with the user's words and why earlier attempts were rejected"
    yield HandoffFile("master_task.json", about, _json(bundle.master_task))
    design = body_of(bundle.detail_design.design_md, bodies)
    about = "how it is to be done, quoted from the designer" if design else "empty: nobody made a design"
    yield HandoffFile(design_name, about, quote_document(design, "the designer") if design else "")
    criteria = _json_list(bundle.acceptance_criteria)
    yield HandoffFile("acceptance_criteria.json", "what must hold, with the commands that prove it", criteria)
    yield from _research(bundle.research_bundle, bodies)


def _research(reports: Iterable[handoff.ResearchReport], bodies: Mapping[str, str]) -> Iterator[HandoffFile]:
    for number, report in enumerate(reports, 1):
        place = f"research_bundle/{safe_name(report.slot or str(number))}"
        for name, document, about in (
            (SUMMARY, report.summary_md, "what a researcher found, quoted"),
            (MEMORY, report.memory_jsonl, "what to remember of it, in the researcher's words"),
            (META, report.analysis_meta, "how sure the researcher is"),
            (OPERATIONS, report.operations, "what the researcher did"),
        ):
            text = body_of(document, bodies)
            if text:
                body = quote_document(text, "a researcher") if name == SUMMARY else text
                yield HandoffFile(f"{place}/{name}", about, body)


def _coder_result(result: handoff.CoderResult) -> Iterator[HandoffFile]:
    for name, messages, about in (
        (CLAIMS, result.claims, "what the author claims; nothing of it is proven yet"),
        (EVIDENCE, result.evidence, "what the author took as evidence"),
        (CHANGED_FILES, result.changed_files, "the files that git saw changed"),
    ):
        yield HandoffFile(f"coder_result/{name}", about, _json_list(messages))


def body_of(document: handoff.Document, bodies: Mapping[str, str]) -> str:
    """The text of a document, inline or in an artifact."""
    return bodies.get(document.artifact.sha256, "") if document.HasField("artifact") else document.text


def write_by_products(folder: Path, paths: Collection[str]) -> None:
    """Names files of the tree that are no part of the work, for evidence and for what is handed in."""
    if paths:
        atomic_write(folder / BY_PRODUCTS, json.dumps(sorted(paths), indent=2) + "\n")


def safe_name(name: str) -> str:
    """A safe file name for an untrusted name; different names get different file names."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    safe = safe.lstrip(".")[:MAX_NAME] or "_"
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:DIGEST_LENGTH]}"


def _json(message: Message) -> str:
    return _dumps(to_json_object(message))


def _json_list(messages: Iterable[Message]) -> str:
    return _dumps([to_json_object(message) for message in messages])


def _dumps(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
