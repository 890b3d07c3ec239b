"""A decision in the making: events are tried out on a copy, so that the next rule sees what the last one did."""

from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.errors import not_found
from pointsman.services.chassis.core.machine import Decision, Event
from pointsman.services.workflow.domain import events as happened
from pointsman.services.workflow.domain.apply import apply
from pointsman.services.workflow.domain.enums import KIND, PauseCause, TaskStatus, WorkflowStatus, check_transition
from pointsman.services.workflow.domain.events import EventName
from pointsman.services.workflow.domain.model import TOTAL, Header, Workflow
from pointsman.services.workflow.domain.pauses import Stop


class DecisionBuilder:
    """What a command has led to so far."""

    def __init__(self, state: Workflow | None, entity_id: str, now: datetime) -> None:
        self._state = state
        self._copied = state is None
        self._entity_id = entity_id
        self.now = now
        self.events: list[Event] = []

    @property
    def exists(self) -> bool:
        """Whether there is a workflow yet."""
        return self._state is not None

    @property
    def state(self) -> Workflow:
        """The workflow as the events so far have made it."""
        if self._state is None:
            raise not_found(KIND, self._entity_id)
        return self._state

    @property
    def header(self) -> Header:
        """Its header."""
        return self.state.header

    def emit(self, name: EventName, data: Any, target: WorkflowStatus | None = None) -> None:
        """Let an event happen; a change of state has to be in the table."""
        source = self._state.header.status if self._state is not None else None
        if source is not None and target is not None and source is not target:
            check_transition(self._entity_id, source, target)
        event = Event(name, source or "", target or source or "", data)
        self.events.append(event)
        if self._state is not None and not self._copied:
            self._state, self._copied = self._state.draft(), True
        self._state = apply(self._state, event, self.now)

    def would_be(self, name: EventName, data: Any) -> Workflow:
        """The workflow as this event would make it, without a change of state."""
        status = self.header.status
        return apply(self.state.draft(), Event(name, status, status, data), self.now)

    def stop(self, stop: Stop | None, constraint_ids: tuple[str, ...] = ()) -> None:
        """Pause a running workflow, if a rule calls for it."""
        if stop is not None:
            paused = happened.Paused(stop.cause, stop.message, constraint_ids)
            self.emit(EventName.PAUSED, paused, WorkflowStatus.PAUSED)

    def fail(self, reason: str) -> None:
        """Fail the workflow at once, through running when it stands still."""
        if self.header.status is WorkflowStatus.FAILED:
            return
        self.reopen(reason)
        self.emit(EventName.FAILED, happened.Failed(reason), WorkflowStatus.FAILED)

    def reopen(self, why: str) -> None:
        """Bring a workflow that stands still back to running, on its way to another state."""
        if self.header.status is not WorkflowStatus.RUNNING:
            self.emit(EventName.REOPENED, happened.Reopened(why), WorkflowStatus.RUNNING)

    def conclude(self) -> None:
        """When nothing is in flight and nothing is ready: failed, blocked, paused for constraints, or completed."""
        header = self.header
        if header.status is not WorkflowStatus.RUNNING or not header.idle_hands or not header.counts[TOTAL]:
            return
        if header.counts[TaskStatus.FAILED]:
            self.fail(f"nothing is left to run but {header.counts[TaskStatus.FAILED]} failed tasks")
        elif header.counts[TaskStatus.BLOCKED]:
            blocked = happened.Blocked(tuple(sorted(header.blocking)))
            self.emit(EventName.BLOCKED, blocked, WorkflowStatus.BLOCKED)
        elif header.unmet:
            message = f"hard constraints are not verified: {', '.join(header.unmet)}"
            self.stop(Stop(PauseCause.CONSTRAINTS, message), header.unmet)
        else:
            self.emit(EventName.COMPLETED, happened.Completed(), WorkflowStatus.COMPLETED)

    def decision(self, answer: Any) -> Decision:
        """The events so far, with the answer."""
        return Decision(tuple(self.events), answer)
