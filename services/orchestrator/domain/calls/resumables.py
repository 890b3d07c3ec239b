"""LIST_RESUMABLE: the workflow service lists unfinished work."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Trigger
from pointsman.services.orchestrator.domain.events import ResumablesFound


@dataclass(frozen=True, slots=True)
class ListResumable:
    """A question that needs nothing but the run itself."""

    call_id: str


def resumables_found(builder: DecisionBuilder, answer: ResumablesFound) -> None:
    """Go by what there is."""
    builder.emit(answer)
    builder.transition(Trigger.FOUND_RESUMABLE if answer.candidates else Trigger.NO_RESUMABLE)


def _resumables_unknown(builder: DecisionBuilder, command: CallRefused) -> None:
    builder.transition(Trigger.NO_RESUMABLE, command.reason)


CALLS = (PeerCall(Call.LIST_RESUMABLE, ListResumable, resumables_found, _resumables_unknown),)
