"""One kind of call to a peer, as the run sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.commands import CallDone, CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Trigger


def end_call(builder: DecisionBuilder, command: Any) -> None:
    """The call has ended; nothing follows from its answer."""
    builder.emit(events.CallEnded(command.call_id))


def fail_run(builder: DecisionBuilder, command: CallRefused) -> None:
    """The run cannot go on without this call."""
    builder.transition(Trigger.FATAL_ERROR, command.reason)


@dataclass(frozen=True, slots=True)
class PeerCall:
    """What a call carries, the command that its answer is, and what follows from its answer and from its refusal."""

    kind: Call
    request: type
    answer: type = CallDone
    on_answer: Callable[[DecisionBuilder, Any], None] = end_call
    on_refused: Callable[[DecisionBuilder, CallRefused], None] = fail_run
