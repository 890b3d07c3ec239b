"""Builds a decision: each event is applied to a copy at once, so that the next rule sees its effect."""

from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.errors import not_found
from pointsman.services.chassis.core.machine import Decision, Event
from pointsman.services.workflow.domain import events
from pointsman.services.workflow.domain.apply import apply
from pointsman.services.workflow.domain.enums import KIND, EventName, PauseCause, TaskStatus, WorkflowStatus
from pointsman.services.workflow.domain.model import TOTAL, Header, Workflow
from pointsman.services.workflow.domain.pause_rules import RequiredPause
from pointsman.services.workflow.domain.transitions import check_command, check_transition
from pointsman.services.workflow.domain.views import Progress, progress_of


class DecisionBuilder:
    """Collects the events of one command, and the state that they lead to."""

    def __init__(self, state: Workflow | None, entity_id: str, now: datetime) -> None:
        self._state = state
        self._copied = state is None
        self._entity_id = entity_id
        self.now = now
        self.events: list[Event] = []

    @property
    def exists(self) -> bool:
        """Whether the workflow exists."""
        return self._state is not None

    @property
    def state(self) -> Workflow:
        """The workflow after the events so far."""
        if self._state is None:
            raise not_found(KIND, self._entity_id)
        return self._state

    @property
    def header(self) -> Header:
        """The header after the events so far."""
        return self.state.header

    @property
    def progress(self) -> Progress:
        """The progress after the events so far."""
        return progress_of(self.header)

    def check_command(self, name: str) -> None:
        """Refuses a command that the state does not accept."""
        check_command(name, self._entity_id, self.header.status)

    def emit(self, name: EventName, data: Any, target: WorkflowStatus | None = None) -> None:
        """Adds an event and applies it; a change of state must be in the transition table."""
        source = self._state.header.status if self._state is not None else None
        if source is not None and target is not None and source is not target:
            check_transition(self._entity_id, source, target)
        event = Event(name, source or "", target or source or "", data)
        self.events.append(event)
        # The ledger still holds the given state: it is copied before its first change.
        if self._state is not None and not self._copied:
            self._state, self._copied = self._state.copy(), True
        self._state = apply(self._state, event, self.now)

    def preview(self, name: EventName, data: Any) -> Workflow:
        """The workflow as it would be after this event, without a change of state."""
        status = self.header.status
        return apply(self.state.copy(), Event(name, status, status, data), self.now)

    def pause(self, required: RequiredPause | None, constraint_ids: tuple[str, ...] = ()) -> None:
        """Pauses a running workflow, if a rule requires it."""
        if required is not None:
            paused = events.Paused(required.cause, required.message, constraint_ids)
            self.emit(EventName.PAUSED, paused, WorkflowStatus.PAUSED)

    def fail(self, reason: str) -> None:
        """Fails the workflow, through running if it does not run."""
        if self.header.status is WorkflowStatus.FAILED:
            return
        self.reopen(reason)
        self.emit(EventName.FAILED, events.Failed(reason), WorkflowStatus.FAILED)

    def reopen(self, why: str) -> None:
        """Returns a workflow that does not run to running, on its way to another state."""
        if self.header.status is not WorkflowStatus.RUNNING:
            self.emit(EventName.REOPENED, events.Reopened(why), WorkflowStatus.RUNNING)

    def conclude(self) -> None:
        """Ends or stops a workflow with nothing left to do: failed, blocked, paused for constraints, or completed."""
        header = self.header
        if header.status is not WorkflowStatus.RUNNING or not header.nothing_to_do or not header.counts[TOTAL]:
            return
        if header.counts[TaskStatus.FAILED]:
            self.fail(f"nothing is left to run but {header.counts[TaskStatus.FAILED]} failed tasks")
        elif header.counts[TaskStatus.BLOCKED]:
            blocked = events.Blocked(tuple(sorted(header.blocking)))
            self.emit(EventName.BLOCKED, blocked, WorkflowStatus.BLOCKED)
        elif header.unmet:
            message = f"hard constraints are not verified: {', '.join(header.unmet)}"
            self.pause(RequiredPause(PauseCause.CONSTRAINTS, message), header.unmet)
        else:
            self.emit(EventName.COMPLETED, events.Completed(), WorkflowStatus.COMPLETED)

    def decision(self, answer: Any) -> Decision:
        """The events so far, with the answer."""
        return Decision(tuple(self.events), answer)
