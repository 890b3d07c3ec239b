"""Contenders of a task: how their events change the run, and which of them is the best one left."""

from collections.abc import Sequence
from dataclasses import replace

from pointsman.services.orchestrator.domain.contender_events import (
    ContenderChosen,
    ContenderHandedIn,
    ContenderProven,
)
from pointsman.services.orchestrator.domain.enums import Grade
from pointsman.services.orchestrator.domain.model import Contender
from pointsman.services.orchestrator.domain.run import Run

_GRADES = tuple(Grade)


def apply_handed_in(run: Run, data: ContenderHandedIn) -> Run:
    """One more contender; its author never judges the task."""
    before, authors = run.tasks[data.task_id].contenders, run.authors.get(data.task_id, ())
    if data.principal and data.principal not in authors:
        authors = (*authors, data.principal)
    contenders = (*before, Contender(data.number, data.work))
    return run.change_task(data.task_id, contenders=contenders).change(authors={**run.authors, data.task_id: authors})


def apply_proven(run: Run, data: ContenderProven) -> Run:
    """What the verifier found about a contender."""
    worth = {
        "proven": True, "passed": data.passed, "grade": data.grade, "reason": data.reason, "failing": len(data.failing),
    }  # fmt: skip
    return _changed(run, data.task_id, data.number, **worth)


def apply_chosen(run: Run, data: ContenderChosen) -> Run:
    """A contender has had its turn."""
    return _changed(run, data.task_id, data.number, chosen=True)


def _changed(run: Run, task_id: str, number: int, **fields: object) -> Run:
    found = run.tasks[task_id].contenders
    changed = tuple(replace(one, **fields) if one.number == number else one for one in found)  # type: ignore[arg-type]
    return run.change_task(task_id, contenders=changed)


def best_of(contenders: Sequence[Contender]) -> Contender | None:
    """The best one that has not had its turn: by grade, then the first; one that failed its proof only as the first choice."""
    if any(one.chosen for one in contenders):
        contenders = [one for one in contenders if not one.chosen and (one.passed or not one.proven)]
    return max(contenders, key=_worth, default=None)


def _worth(one: Contender) -> tuple[bool, int, int, int]:
    grade = _GRADES.index(one.grade) if one.grade is not None else -1
    return one.passed, grade, -one.failing, -one.number
