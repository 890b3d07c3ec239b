"""Print the schemas of the handoff folder's files into `docs/agents.md` from the messages that they are read as: `handoff.py [--check]`."""

import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.worker import handoff as files

PAGE = Path(__file__).parent / "agents.md"
BEGIN, END = "<!-- schemas -->", "<!-- end of schemas -->"
LISTS: dict[str, Descriptor] = {
    files.CLAIMS: handoff.Claim.DESCRIPTOR,
    files.EVIDENCE: handoff.Evidence.DESCRIPTOR,
    files.CHANGED_FILES: handoff.ChangedFile.DESCRIPTOR,
    "acceptance_criteria.json": handoff.AcceptanceCriterion.DESCRIPTOR,
}
OBJECTS: dict[str, Descriptor] = {
    files.PLAN: work.Plan.DESCRIPTOR,
    files.ANSWERS: work.FeedbackAnswers.DESCRIPTOR,
    files.DECISION: handoff.ReviewDecision.DESCRIPTOR,
    files.ROUTE: work.StageRoute.DESCRIPTOR,
    files.USAGE: Usage.DESCRIPTOR,
    "master_task.json": handoff.MasterTask.DESCRIPTOR,
    files.FINDING: work.TaskFinding.DESCRIPTOR,
}
SCALARS = {
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
}
STAMP = "google.protobuf.Timestamp"


def schemas() -> str:
    """One row for each file, then one for each message and enum that their fields name."""
    described: dict[str, str] = {}
    rows = ["| file | holds |", "|---|---|"]
    rows += [f"| `{name}` | a list of {message.name} |" for name, message in LISTS.items()]
    rows += [f"| `{name}` | one {message.name} |" for name, message in OBJECTS.items()]
    for message in (*LISTS.values(), *OBJECTS.values()):
        _describe(message, described)
    rows += ["", "| name | fields, or values |", "|---|---|"]
    return "\n".join((*rows, *(f"| {name} | {text} |" for name, text in described.items())))


def _describe(message: Descriptor, described: dict[str, str]) -> None:
    """A message, and whatever it holds, each once."""
    if message.name in described:
        return
    described[message.name] = ", ".join(_field(field) for field in message.fields)
    for field in message.fields:
        if field.enum_type is not None:
            described.setdefault(field.enum_type.name, ", ".join(_values(field.enum_type)))
        elif field.message_type is not None and field.message_type.full_name != STAMP:
            _describe(field.message_type, described)


def _field(field: FieldDescriptor) -> str:
    return f"`{field.name}`: {'list of ' if field.is_repeated else ''}{_type(field)}"


def _type(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.name)
    if field.message_type is not None:
        return "time (RFC 3339)" if field.message_type.full_name == STAMP else str(field.message_type.name)
    return SCALARS.get(field.cpp_type, "integer")


def _values(enum: EnumDescriptor) -> Iterator[str]:
    """The values of an enum as files write them, without the prefix that they share."""
    names = [value.name for value in enum.values]
    prefix = names[0].removesuffix("UNSPECIFIED")
    return (name.removeprefix(prefix) for name in names[1:])


def page() -> str:
    """The page with the schemas of today."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{schemas()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Write the page, or say whether it is as the messages are."""
    if "--check" in arguments:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
