"""A run's question as elicitation, and what a person fills in as an answer."""

from collections.abc import Mapping
from typing import Any

from pointsman.api.orchestrator.v1.run_pb2 import (
    ANSWER_KIND_ACCEPT,
    ANSWER_KIND_PROCEED,
    ANSWER_KIND_RAISE,
    ANSWER_KIND_RESTART_STAGE,
    ANSWER_KIND_SKIP,
    ANSWER_KIND_SKIP_STAGE,
    ANSWER_KIND_WAIVE,
    AnswerKind,
    Budget,
    Question,
    Run,
)
from pointsman.client import Reply
from pointsman.mcp.parameters import Answer
from pointsman.mcp.results import answer_name
from pointsman.mcp.workplace import Unusable
from pointsman.worker.quoting import printable

STAGES = (ANSWER_KIND_RESTART_STAGE, ANSWER_KIND_SKIP_STAGE)
OF_A_PERSON = frozenset(
    {
        ANSWER_KIND_ACCEPT, ANSWER_KIND_PROCEED, ANSWER_KIND_RAISE, ANSWER_KIND_SKIP, ANSWER_KIND_SKIP_STAGE,
        ANSWER_KIND_WAIVE,
    }
)  # fmt: skip
"""They accept or approve, do without a proof, or spend more: a model may not give them."""


def form(question: Question) -> dict[str, Any]:
    """The schema of the form that a client shows: which answer, and what goes with it."""
    fields: dict[str, Any] = {
        "answer": {"type": "string", "title": "Answer", "enum": [answer_name(kind) for kind in question.takes]},
        "text": {"type": "string", "title": "In words", "description": "May be empty.", "maxLength": 65536},
    }
    if ANSWER_KIND_RAISE in question.takes:
        for name in ("assignments", "tokens", "minutes"):
            fields[name] = {"type": "integer", "title": f"raise: {name}", "minimum": 0}
    if any(kind in STAGES for kind in question.takes):
        fields["stage"] = {"type": "string", "title": "Stage"}
    return {"type": "object", "properties": fields, "required": ["answer"]}


def is_of_a_person(given: Answer) -> bool:
    """Whether a model that calls the tool may not give this answer itself."""
    return _word(given) in {answer_name(kind) for kind in OF_A_PERSON}


def _word(given: Answer) -> str:
    return given.answer.strip().lower().replace("-", "_")


def elicitation(run: Run) -> dict[str, Any]:
    """The parameters of `elicitation/create` for the open question of a run."""
    about = "".join(f"\n> {printable(subject)}" for subject in run.question.subjects)
    message = f"{run.id} asks: {printable(run.question.text)}{about}"
    return {"mode": "form", "message": message, "requestedSchema": form(run.question)}


def filled_in(run_id: str, content: Mapping[str, Any]) -> Answer:
    """The answer in a form that came back."""
    given = {name: value for name, value in content.items() if value is not None}
    return Answer.model_validate({"run_id": run_id, **given})


def reply(question: Question, given: Answer) -> Reply:
    """The answer for the orchestrator; refused here only if there is no such word."""
    kinds = {answer_name(kind): kind for kind in question.takes}
    kind = kinds.get(_word(given))
    if kind is None:
        raise Unusable(f"answer: the question takes {', '.join(kinds)}, not '{given.answer}'")
    return Reply(kind, given.text, given.task_id, given.stage, budget=_budget(kind, given))


def _budget(kind: AnswerKind.ValueType, given: Answer) -> Budget | None:
    if kind != ANSWER_KIND_RAISE:
        return None
    budget = Budget(assignments=given.assignments, tokens=given.tokens)
    if given.minutes:
        budget.wall_clock.FromSeconds(given.minutes * 60)
    return budget
