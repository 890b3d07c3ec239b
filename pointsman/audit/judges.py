"""Who judged: never an author of what was judged, and only a principal that was granted it when its result was taken."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pointsman.services.chassis.engine.audit import History, Violation
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.contender_events import ContenderHandedIn
from pointsman.services.orchestrator.domain.enums import AssignmentEnd, Capability
from pointsman.services.orchestrator.domain.model import Assignment


@dataclass(slots=True)
class _Makers:
    """Who has made what so far, read from the journal alone."""

    of_tasks: dict[str, set[str]] = field(default_factory=dict)
    of_plan: set[str] = field(default_factory=set)
    wave: tuple[str, ...] = ()
    offered: dict[str, Assignment] = field(default_factory=dict)
    are_named: bool = False
    """Whether principals are written down by now; a run of an earlier version begins without."""

    def learn(self, data: Any) -> None:
        """Take in one event."""
        if isinstance(data, events.WorkHandedIn | ContenderHandedIn) and data.principal:
            self.of_tasks.setdefault(data.task_id, set()).add(data.principal)
        elif isinstance(data, events.Planned) and data.principal:
            self.of_plan.add(data.principal)
        elif isinstance(data, events.WaveClaimed):
            self.wave = data.task_ids
        elif isinstance(data, events.Assigned):
            self.offered[data.assignment.assignment_id] = data.assignment

    def judged_by(self, item: Assignment) -> set[str]:
        """The authors of what an assignment judges; empty where it judges nothing."""
        if item.capability is Capability.REVIEW:
            return self.of_tasks.get(item.task_id, set())
        if item.capability is Capability.VERIFY:
            return {author for task_id in self.wave for author in self.of_tasks.get(task_id, ())}
        return self.of_plan if item.capability is Capability.DEBATE else set()


def judges(history: History) -> Iterator[Violation]:
    """Every result that was taken from somebody who may not have given it."""
    makers = _Makers()
    for step, event in zip(history.steps, history.events, strict=True):
        makers.learn(event.data)
        if isinstance(event.data, events.AssignmentEnded) and event.data.end is AssignmentEnd.DONE:
            item = makers.offered.get(event.data.assignment_id)
            for problem in _problems(makers, item, event.data) if item is not None else ():
                yield history.violation("judge", step.seq, f"{event.data.assignment_id} {problem}")
            makers.are_named = makers.are_named or bool(event.data.principal)


def _problems(makers: _Makers, item: Assignment, end: events.AssignmentEnded) -> Iterator[str]:
    """What is wrong with the principal from whom a result was taken."""
    if not end.principal:
        if makers.are_named:
            yield "was taken from nobody that is named"
        return
    if end.granted is not item.capability:
        yield f"was taken from {end.principal}, which was not granted {item.capability.lower()}"
    if end.principal in makers.judged_by(item):
        yield f"is judged by {end.principal}, an author of what it judges"
