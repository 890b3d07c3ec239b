"""One kind of call to a peer: what it carries, and what follows from its answer and from its refusal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Trigger


def record_answer(builder: DecisionBuilder, answer: Any) -> None:
    """Record the answer; nothing else follows from it."""
    builder.emit(answer)


def fail_run(builder: DecisionBuilder, command: CallRefused) -> None:
    """The run cannot go on without this call."""
    builder.transition(Trigger.FATAL_ERROR, command.reason)


@dataclass(frozen=True, slots=True)
class PeerCall:
    """A kind of call; its request and its answer both name the call that they belong to."""

    kind: Call
    request: type
    on_answer: Callable[[DecisionBuilder, Any], None] = record_answer
    on_refused: Callable[[DecisionBuilder, CallRefused], None] = fail_run
