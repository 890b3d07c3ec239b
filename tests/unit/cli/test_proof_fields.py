"""Every field of the proof contract is shown: by `show`, the console, the delivery and the trace."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from pointsman import __file__ as package
from pointsman.api.handoff.v1 import delivery_pb2, handoff_pb2, proof_pb2, work_pb2
from pointsman.api.handoff.v1.proof_pb2 import Proof
from pointsman.api.orchestrator.v1.evidence_pb2 import Attempt
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, Run
from pointsman.cli.render.attempts import attempt_lines
from pointsman.cli.session.follow import delivery_lines
from pointsman.worker.proof_messages import proof_attributes

CONSOLE = Path(package).parent.parent / "services" / "gateway" / "console" / "js"
OURS = (Proof, proof_pb2.ProofCommand, proof_pb2.TestResult, proof_pb2.ProtectedChange)
INTERNAL = {"Proof.key": "the verifier recognises its own proof by it; people compare tree and base"}
FIELDS = [f"{kind.DESCRIPTOR.name}.{name}" for kind in OURS for name in kind.DESCRIPTOR.fields_by_name]
WORDS = {"grade": "proven", "outcome": "passed", "before": "failed", "change": "modified", "reused": "TEST stage"}
"""What is shown for fields that hold no text."""


def filled() -> Proof:
    """A proof in which every text is the name of its field."""
    proof = Proof(
        grade=proof_pb2.GRADE_PROVEN, reused=True, isolation="<isolation>", base_commit="<base_commi", tree_hash="<tree_hash",
        reasons=["<reasons>"], questions=["<questions>"], risks=["<risks>"], key="<key>",
        changed_files=[handoff_pb2.ChangedFile(path="<changed_files>", change=handoff_pb2.FILE_CHANGE_ADDED)],
        held_out_output=handoff_pb2.ArtifactRef(sha256="<held_out"),
    )  # fmt: skip
    command = proof.commands.add(
        command=["<command>"], adapter="<adapter>", exit_code=41, executed=4242, flaky=["<flaky>"]
    )
    command.tests.add(
        id="<id>", outcome=proof_pb2.TEST_OUTCOME_PASSED, before=proof_pb2.TEST_OUTCOME_FAILED, message="<message>"
    )
    proof.protected_changes.add(
        path="<path>", change=handoff_pb2.FILE_CHANGE_MODIFIED, kind="<kind>", why="<why>", keys=["<keys>"]
    )
    return proof


def holes(message: Message) -> Iterator[str]:
    """Fields of ours that a sample leaves empty."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if not value:
            yield f"{message.DESCRIPTOR.name}.{field.name}"
        elif field.type == FieldDescriptor.TYPE_MESSAGE and isinstance(value, Message) and isinstance(value, OURS):
            yield from holes(value)
        elif field.message_type in [kind.DESCRIPTOR for kind in OURS]:
            yield from (hole for one in value for hole in holes(one))


def test_the_sample_has_every_field_so_that_a_new_one_is_noticed() -> None:
    assert list(holes(filled())) == []


def mark(field: str) -> str:
    """What shows a field of the sample."""
    name = field.partition(".")[2]
    numbers = {
        "exit_code": "41",
        "executed": "4242",
        "commands": "<command>",
        "tests": "<id>",
        "protected_changes": "<path>",
    }
    texts = {"base_commit": "<base_commi", "tree_hash": "<tree_hash", "held_out_output": "<held_out"}
    return (WORDS | numbers | texts).get(name, f"<{name}>")


@pytest.mark.parametrize("field", sorted(set(FIELDS) - set(INTERNAL)))
def test_show_has_every_field_of_a_proof(field: str) -> None:
    attempt = Attempt(task_id="T", finding=work_pb2.TaskFinding(proof=filled()))
    assert mark(field).lower() in "\n".join(attempt_lines(attempt)).lower()


@pytest.mark.parametrize("field", sorted(set(FIELDS) - set(INTERNAL)))
def test_the_console_reads_every_field_of_a_proof(field: str) -> None:
    name = field.partition(".")[2]
    views = "\n".join((CONSOLE / file).read_text() for file in ("findings.js", "review.js"))
    assert re.search(rf"\.{name}\b", views), f"neither findings.js nor review.js shows {field}"


def test_the_delivery_says_what_its_grade_rests_on() -> None:
    delivery = delivery_pb2.Delivery(grade=proof_pb2.GRADE_PROVEN)
    delivery.deliverables.add(task_id="T", grade=proof_pb2.GRADE_PROVEN, proof=filled())
    shown = "\n".join(delivery_lines(Run(id="r", state=RUN_STATE_COMPLETE), delivery))
    for wanted in ("PROVEN", "<base_commi", "<isolation>", "<command>", "4242 tests", "<id>", "<path>", "<why>"):
        assert wanted in shown


def test_the_trace_has_worth_base_tests_and_protected_changes_and_no_names_of_tests() -> None:
    found = proof_attributes([work_pb2.TaskFinding(accepted=True, proof=filled())])
    assert {name.removeprefix("pointsman.proof."): value for name, value in found.items()} == {
        "grade": "PROVEN", "base": "<base_commi", "isolation": "<isolation>", "reused": 1, "tests.executed": 4242,
        "tests.turned_green": 1, "tests.red": 0, "tests.flaky": 1, "protected_changes": 1, "questions": 1,
    }  # fmt: skip


def test_a_client_from_before_proofs_reads_the_rest_of_a_delivery() -> None:
    new = delivery_pb2.Deliverable(task_id="T", statement="done", grade=proof_pb2.GRADE_PROVEN, proof=filled())
    old = _older(delivery_pb2.Deliverable, without="proof")
    read = old.FromString(new.SerializeToString())
    assert (read.task_id, read.statement, read.grade) == ("T", "done", proof_pb2.GRADE_PROVEN)  # type: ignore[attr-defined]
    assert delivery_pb2.Deliverable.FromString(read.SerializeToString()) == new, "what it does not know it passes on"


def _older(kind: type[Message], without: str) -> type[Message]:
    """A message as it was before a field came."""
    pool = DescriptorPool()
    for source in _files(kind.DESCRIPTOR.file):
        file = FileDescriptorProto()
        source.CopyToProto(file)
        for message in [one for one in file.message_type if one.name == kind.DESCRIPTOR.name]:
            kept = [field for field in message.field if field.name != without]
            del message.field[:]
            message.field.extend(kept)
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(kind.DESCRIPTOR.full_name))


def _files(file: Any) -> list[Any]:
    """A file behind all that it imports, each once."""
    found = [one for needed in file.dependencies for one in _files(needed)]
    return list(dict.fromkeys([*found, file]))
