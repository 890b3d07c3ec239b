"""STORE_EPIC, QUEUE_MESSAGE and LOAD_EPIC: the workflow service keeps the run's epic, or hands a stored one over."""

from dataclasses import dataclass, replace

from pointsman.services.orchestrator.domain.calls.other_runs import StartNext
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, ExecutionMode, Reply, State, Trigger
from pointsman.services.orchestrator.domain.events import EpicStored, Resumed

OTHER_RUN_WINS = "kept"


@dataclass(frozen=True, slots=True)
class StoreEpic:
    """Store the epic with its text; an empty id makes a new one."""

    call_id: str
    epic_id: str
    intent: str
    priority: int
    owned: bool
    mode: ExecutionMode = ExecutionMode.QUALITY_GATE


@dataclass(frozen=True, slots=True)
class Epic:
    """Do something with an epic."""

    call_id: str
    epic_id: str


def epic_stored(builder: DecisionBuilder, answer: EpicStored) -> None:
    """The epic is stored: plan it, or leave it there when the other run wins."""
    if builder.in_state(State.RESUME_PLAN):
        _message_queued(builder, answer)
        return
    builder.emit(answer)
    if builder.run.disposition == str(Reply.KEEP):
        builder.transition(Trigger.CANCEL, OTHER_RUN_WINS)
    else:
        builder.transition(Trigger.BD_UPSERT_DONE)


def _message_queued(builder: DecisionBuilder, answer: EpicStored) -> None:
    """The message is safe: load the epic to resume, or start its own run when it has no plan yet."""
    builder.emit(replace(answer, queued=True))
    best = builder.run.candidates[0]
    if best.planned:
        builder.call(Call.LOAD_EPIC, lambda call: Epic(call, best.epic_id))
        return
    builder.send(Call.START_NEXT, StartNext("", best.epic_id))
    builder.transition(Trigger.CANCEL, OTHER_RUN_WINS)


def epic_loaded(builder: DecisionBuilder, answer: Resumed) -> None:
    """Go on with the resumed plan."""
    builder.emit(answer)
    builder.transition(Trigger.RESUME_QUEUE_LOADED)


CALLS = (
    PeerCall(Call.STORE_EPIC, StoreEpic, epic_stored),
    PeerCall(Call.QUEUE_MESSAGE, StoreEpic, epic_stored),
    PeerCall(Call.LOAD_EPIC, Epic, epic_loaded),
)
