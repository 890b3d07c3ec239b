"""One command's way through the machine: it records events, and collects what has to be done outside."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, count
from typing import Any

from pointsman._shared.excerpt import excerpt
from pointsman.services.chassis.core.errors import state_forbids
from pointsman.services.chassis.core.machine import CancelTimer, Decision, Effect, Event, SetTimer
from pointsman.services.orchestrator.domain import events, spending
from pointsman.services.orchestrator.domain.apply import apply
from pointsman.services.orchestrator.domain.enums import (
    AssignmentEnd,
    Call,
    Capability,
    InternalEvent,
    Question,
    State,
    Trigger,
)
from pointsman.services.orchestrator.domain.event_types import EVENT_OF
from pointsman.services.orchestrator.domain.model import Assignment, OpenQuestion, Risk, Usage
from pointsman.services.orchestrator.domain.run import Run, RunState

WALL_CLOCK = "wall_clock"
REASON_LENGTH = 600
CAUSE_LENGTH = 2000
Action = Callable[["DecisionBuilder"], None]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on the run, with the name that is printed."""

    name: str
    holds: Callable[[Run], bool]


ALWAYS = Guard("", lambda _run: True)


@dataclass(frozen=True, slots=True)
class Row:
    """One transition: from a state, on an event, if the guard holds, to a state, with the actions that follow."""

    source: State
    event: Trigger
    target: State
    actions: tuple[Action, ...] = ()
    guard: Guard = ALWAYS

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names that are printed for the actions."""
        return tuple(action.__name__ for action in self.actions)


class Table:
    """The rows of a machine, found by state and event."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._by_key: dict[tuple[State, Trigger], list[Row]] = {}
        for row in self.rows:
            self._by_key.setdefault((row.source, row.event), []).append(row)

    def rows_for(self, state: State, event: Trigger) -> Sequence[Row]:
        """The rows that leave a state on an event, in the order in which their guards are asked."""
        return self._by_key.get((state, event), ())

    def events_from(self, state: State) -> tuple[Trigger, ...]:
        """The events that a state knows."""
        return tuple(dict.fromkeys(row.event for row in self.rows if row.source is state))


def because(why: str) -> str:
    """A reason as the end of a sentence; nothing where none was given."""
    said = why.strip()
    return f" ({excerpt(said, REASON_LENGTH)})" if said else ""


def last_setback(assignment: Assignment) -> str:
    """What the last agent said that could not do it."""
    return assignment.setbacks[-1] if assignment.setbacks else ""


class DecisionBuilder:
    """The run as it changes under one command; nothing of it happens unless all of it is committed."""

    def __init__(self, state: RunState, now: datetime, table: Table) -> None:
        self._state = RunState(state.run.copy(), state.leases, state.present, state.crews, state.asked)
        self._table = table
        self._actions: deque[Action] = deque()
        self._was_asked = state.run.question is not None
        self.now = now
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.timers: list[SetTimer | CancelTimer] = []
        self.drop_effects = False

    @property
    def run(self) -> Run:
        """The run as it is now."""
        return self._state.run

    @property
    def leases(self) -> Any:
        """The leases of the assignments that the batch's commands name."""
        return self._state.leases

    def decision(self, answer: Any) -> Decision:
        """What the command leads to."""
        assert not self._actions, "actions are queued that have not run"
        self._wind_up_clock()
        return Decision(self.events, answer, self.effects, self.timers, self.drop_effects, self._state)

    def _wind_up_clock(self) -> None:
        """The clock asks nothing while a question is open, so it strikes anew once that one is gone."""
        run = self.run
        if self._was_asked and run.question is None and not run.ended and self.now >= self.deadline:
            self.set_timer(WALL_CLOCK, 0.0)

    def is_present(self, capability: Capability, excluded: Sequence[str] = ()) -> bool:
        """Whether an agent with the capability is there or will be, of another principal than these."""
        if not excluded or not self._state.crews:
            return capability in self._state.present or capability in self.run.order.crew
        return any(capability in crew.capabilities and crew.principals - {*excluded} for crew in self._state.crews)

    def emit(self, data: Any) -> None:
        """Record an event that leaves the state as it is."""
        status = str(self.run.status)
        event = Event(str(EVENT_OF[type(data)]), status, status, data)
        self._state = apply(self._state, event, self.now)
        self.events.append(event)

    def transition(self, trigger: Trigger, reason: str = "", *, is_replan: bool = False) -> None:
        """Record the first row of the table whose guard holds, and queue its actions."""
        run = self.run
        row = next((row for row in self._table.rows_for(run.status, trigger) if row.guard.holds(run)), None)
        if row is None:
            raise self.refusal(f"the event '{trigger}' is not for a run in {run.status}")
        data = events.Transitioned(excerpt(reason, CAUSE_LENGTH), is_replan)
        event = Event(str(trigger), str(row.source), str(row.target), data)
        self._state = apply(self._state, event, self.now)
        self.events.append(event)
        self._actions.extend(row.actions)

    def run_actions(self) -> None:
        """Run the queued actions in order; one that records another transition queues more."""
        while self._actions:
            self._actions.popleft()(self)

    def refusal(self, message: str) -> Exception:
        """The state forbids it; the caller learns the state and what it knows."""
        allowed = tuple(str(event) for event in self._table.events_from(self.run.status))
        return state_forbids("run", self.run.run_id, str(self.run.status), allowed, message)

    def call(self, call: Call, request: Callable[[str], Any], subject: str = "") -> None:
        """Ask another service; its answer comes back as a command that names the call."""
        call_id = f"c{self.run.call_count + 1}"
        self.emit(events.Called(call_id, call, subject))
        self.effects.append(Effect(str(call), request(call_id)))

    def send(self, call: Call, data: Any) -> None:
        """Have something done elsewhere whose answer does not matter any more."""
        self.effects.append(Effect(str(call), data))

    def assign_together(self, assignments: Sequence[Assignment]) -> None:
        """Offer pieces of work that count together: the budget has room for the starts of all of them, or none is offered."""
        lacks_room = self.run.spent.assignments + len(assignments) > self.run.budget.assignments
        for assignment in assignments:
            self.assign(assignment, len(assignments) if lacks_room else 1)

    def assign(self, assignment: Assignment, starts: int = 1) -> None:
        """Offer a piece of work to the agents, if the budget has room for so many starts."""
        is_free = assignment.capability is Capability.VERIFY
        name = f"v{self.run.spent.transitions + 1}" if is_free else f"a{spending.next_number(self.run)}"
        assignment_id = assignment.assignment_id or f"{self.run.run_id}.{name}"
        authors = self.run.excluded_from(assignment.capability, assignment.task_id)
        barred = authors or assignment.excluded_principals
        assignment = replace(assignment, assignment_id=assignment_id, created_at=self.now, excluded_principals=barred)
        exhausted = self._exhausted(starts=0 if is_free else starts)
        lacks = "" if exhausted or is_free else spending.lacks_room(self.run, assignment.capability)
        if not exhausted and not lacks:
            self.emit(events.Assigned(spending.with_hold(self.run, assignment), is_free))
            return
        if all(held.assignment_id != assignment_id for held in self.run.held):
            self.emit(events.BudgetHeld(assignment, exhausted or lacks, by_running=bool(lacks)))
        if exhausted and self.run.question is None:
            text = f"The budget is exhausted: {exhausted}. Raise it to go on, or cancel the run."
            self.ask(Question.BUDGET, text, (exhausted,))

    def offer_held(self) -> None:
        """Offer again what the budget held back."""
        for assignment in self.run.held:
            self.assign(assignment)

    def _exhausted(self, *, starts: int) -> str:
        """What of the budget is used up; the verifier starts no agent, so that what was paid for can be proven."""
        budget, spent = self.run.budget, self.run.spent
        limits = {
            "assignments": starts > 0 and spent.assignments + starts > budget.assignments,
            **spending.used_up(budget, spent),
            "wall_clock": self.now >= self.deadline,
        }
        return ", ".join(name for name, reached in limits.items() if reached)

    def stops_at_limit(self) -> bool:
        """The transition limit ends a run that goes in circles; whether it has."""
        if self.run.spent.transitions < self.run.budget.transitions:
            return False
        self.transition(Trigger.FATAL_ERROR, f"the limit of {self.run.budget.transitions} transitions is reached")
        return True

    @property
    def deadline(self) -> datetime:
        """When the run's time is over."""
        return self.run.created_at + timedelta(seconds=self.run.budget.wall_clock_seconds)

    @property
    def free_slots(self) -> int:
        """How many more assignments may be live at the same time."""
        return max(0, self.run.budget.fan_out - len(self.run.assignments))

    def end_assignment(self, assignment_id: str, end: AssignmentEnd, **details: Any) -> None:
        """Nobody has to work on it any more."""
        self.emit(events.AssignmentEnded(assignment_id, end, restarts=self.restarts(assignment_id), **details))

    def restarts(self, assignment_id: str) -> int:
        """Starts of an agent on it, beyond the first, that the run has not counted yet; its lease has to be loaded."""
        lease, assignment = self.leases.get(assignment_id), self.run.assignments.get(assignment_id)
        if lease is None or assignment is None or assignment.capability is Capability.VERIFY:
            return 0
        return int(max(0, lease.attempt - 1 - assignment.restarts))

    def may_start_again(self, assignment_id: str, used: Usage) -> bool:
        """Whether the budget has room for another start of an agent on it: each start counts, not each assignment."""
        assignment = self.run.assignments.get(assignment_id)
        if assignment is not None and assignment.capability is Capability.VERIFY:
            return True
        if any(spending.used_up(self.run.budget, spending.add(self.run.spent, used)).values()):
            return False
        return self.run.spent.assignments + self.restarts(assignment_id) < self.run.budget.assignments

    def ask(self, kind: Question, text: str, subjects: tuple[str, ...] = ()) -> None:
        """Ask a person."""
        question_id = f"q{self.run.question_count + 1}"
        self.emit(events.Asked(OpenQuestion(question_id, kind, text, subjects, self.now)))

    def risk(self, key: str, statement: str, **details: Any) -> None:
        """Note a risk that stays."""
        self.named_risks((Risk(key, statement, **details),))

    def named_risks(self, risks: Iterable[Risk], task_id: str = "") -> None:
        """Note risks; a key that stands for another risk already gets a number, so that no agent can take one of ours."""
        known = {risk.key: risk for risk in self.run.risks}
        noted = []
        for risk in risks:
            whole = replace(risk, task_id=risk.task_id or task_id)
            keys = chain((risk.key,), (f"{risk.key}-{number}" for number in count(2)))
            named = next(one for one in (replace(whole, key=key) for key in keys) if known.get(one.key, one) == one)
            if named.key not in known:
                known[named.key] = named
                noted.append(named)
        if noted:
            self.emit(events.RisksNoted(tuple(noted)))

    def set_timer(self, name: str, seconds: float) -> None:
        """Set a durable timer."""
        self.timers.append(SetTimer(name, self.now + timedelta(seconds=seconds)))

    def in_state(self, *states: State) -> bool:
        """Whether the run is in one of the states."""
        return self.run.status in states

    @staticmethod
    def first_event(data: events.Submitted) -> Event:
        """The run's first event."""
        return Event(str(InternalEvent.SUBMITTED), "", str(State.BOOT), data)
