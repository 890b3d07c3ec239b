"""Messages of commits that land: a subject from the task, its claims and what proved them, and trailers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pointsman.api.handoff.v1.delivery_pb2 import Delivery
from pointsman.api.handoff.v1.proof_pb2 import Grade
from pointsman.api.orchestrator.v1.evidence_pb2 import Attempt
from pointsman.api.orchestrator.v1.landing_pb2 import Entry
from pointsman.worker.commit_message import MAX_CLAIMS, MAX_STATEMENT, one_line, subject

NO_REPLY = "pointsman@localhost"


@dataclass(frozen=True, slots=True)
class Story:
    """What a commit tells: the entry, what the run delivered, and who wrote it."""

    entry: Entry
    delivery: Delivery = field(default_factory=Delivery)
    authors: Sequence[str] = ()
    attempts: tuple[Attempt, ...] = ()
    trace: str = ""
    """Where its trace is, in Markdown."""


def landing_message(story: Story) -> str:
    """The message of the commit that brings an entry's work into the target."""
    entry, delivery = story.entry, story.delivery
    body = [f"Proven as {_grade(delivery.grade)}:"] if delivery.deliverables else []
    body += _claims(delivery)
    trailers = [
        f"Pointsman-Run: {one_line(entry.work_run_id, 128)}",
        *(f"Pointsman-Task: {one_line(item.task_id, 128)}" for item in delivery.deliverables),
        f"Pointsman-Entry: {one_line(entry.id, 128)}",
        *(f"Co-authored-by: {one_line(name, 128)} <{NO_REPLY}>" for name in dict.fromkeys(story.authors)),
    ]
    parts = (subject(entry.title or f"Land {entry.run_id}"), "\n".join(body), "\n".join(trailers))
    return "\n\n".join(part for part in parts if part)


def _claims(delivery: Delivery) -> Iterable[str]:
    stated = [
        f"- {one_line(claim.statement, MAX_STATEMENT)} ({one_line(item.task_id, 64)}, {_grade(item.grade)})"
        for item in delivery.deliverables
        for claim in item.claims
    ]
    more = [f"- and {len(stated) - MAX_CLAIMS} more"] if len(stated) > MAX_CLAIMS else []
    return [*stated[:MAX_CLAIMS], *more]


def _grade(grade: Grade.ValueType) -> str:
    return Grade.Name(grade).removeprefix("GRADE_").replace("_", " ")
