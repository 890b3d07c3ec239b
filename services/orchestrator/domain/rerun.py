"""Doing again what a run did: the run as it was at a point of its journal, and what was left to do there."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pointsman.services.chassis.core.errors import Refusal, invalid_field, state_forbids
from pointsman.services.chassis.core.machine import Event
from pointsman.services.orchestrator.domain.apply import apply
from pointsman.services.orchestrator.domain.enums import Resume, TaskStatus
from pointsman.services.orchestrator.domain.events import Planned, Resumed, WaveClaimed
from pointsman.services.orchestrator.domain.model import Order, Plan
from pointsman.services.orchestrator.domain.origin import Origin
from pointsman.services.orchestrator.domain.run import Run, RunState

PLAN_POINT = "plan"
NAMED_WAVES = 20


@dataclass(frozen=True, slots=True)
class Point:
    """Where to go on: before a wave, before the last wave of a task, or with a new plan."""

    wave: int = 0
    task_id: str = ""

    def __str__(self) -> str:
        """As people write it."""
        return f"wave:{self.wave}" if self.wave else f"task:{self.task_id}" if self.task_id else PLAN_POINT


@dataclass(frozen=True, slots=True)
class Moment:
    """A run as it was, with its plan of that time, and the tasks that were claimed next."""

    run: Run
    plan: Plan | None
    claimed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """The terms of a run that does again what another did, and the plan that it goes on with."""

    order: Order
    plan: Plan | None = None


def moments(history: Iterable[tuple[Event, datetime]]) -> list[Moment]:
    """The run before each of its waves, and at last as it ended."""
    state: RunState | None = None
    plan: Plan | None = None
    found: list[Moment] = []
    for event, at in history:
        data = event.data
        if isinstance(data, WaveClaimed) and data.task_ids and state is not None:
            found.append(Moment(state.run.copy(), plan, data.task_ids))
        state = apply(state, event, at)
        plan = data.plan if isinstance(data, Planned | Resumed) else plan
    assert state is not None, "a run has a first event"
    return [*found, Moment(state.run, plan)]


def restart(past: Sequence[Moment], point: Point) -> Restart:
    """On which terms a run goes on from a point of another one; refused where that has no such point."""
    *waves, end = past
    if not end.run.ended:
        raise _still_live(end.run)
    if point.wave:
        return _from_moment(_wave(waves, point), end.run, point)
    if point.task_id:
        return _from_moment(_before_task(waves, end, point), end.run, point)
    return _from_plan(past[0], end.run, point)


def _from_plan(first: Moment, ended: Run, point: Point) -> Restart:
    """On the base with a new plan, unless the user brought one: that is the plan again."""
    plan = first.plan if ended.order.brings_plan else None
    brought = plan if plan is not None and not plan.built_in else None
    approved = brought is not None and first.run.plan_approved
    return Restart(_order(ended, Origin(ended.run_id, _first(ended), str(point), plan_approved=approved)), brought)


def _still_live(run: Run) -> Refusal:
    message = f"the run is {run.status}: cancel it first, or wait until it has ended"
    return state_forbids("run", run.run_id, str(run.status), (), message)


def _wave(waves: Sequence[Moment], point: Point) -> Moment:
    if point.wave <= len(waves):
        return waves[point.wave - 1]
    listed = "; ".join(f"{number}: {', '.join(moment.claimed)}" for number, moment in enumerate(waves, 1))
    known = f"it had {len(waves)} ({listed[:1000]})" if waves else "it had none; go on from its plan"
    raise invalid_field("point.wave", f"the run had no wave {point.wave}: {known}")


def _before_task(waves: Sequence[Moment], end: Moment, point: Point) -> Moment:
    """The last wave of a task; of one that was never begun, the end of the run."""
    claimed = [moment for moment in waves if point.task_id in moment.claimed]
    if claimed:
        return claimed[-1]
    task = end.run.tasks.get(point.task_id)
    if task is None or end.plan is None:
        named = ", ".join(list(end.run.tasks)[:NAMED_WAVES]) or "none, for it ended before it had a plan"
        raise invalid_field("point.task_id", f"the run has no task '{point.task_id}'; its tasks are {named}")
    if task.status is TaskStatus.ACCEPTED:
        raise invalid_field(
            "point.task_id", f"'{point.task_id}' was accepted before this run began; rerun the run that worked on it"
        )
    return end


def _from_moment(moment: Moment, ended: Run, point: Point) -> Restart:
    run = moment.run
    assert moment.plan is not None, "tasks are claimed from a plan"
    origin = Origin(
        ended.run_id, _first(ended), str(point), run.accepted_commit, run.accepted_bundle, run.plan_approved
    )
    order = _order(ended, origin)
    routing = replace(order.routing, debate=order.routing.debate and not run.debated)
    return Restart(replace(order, routing=routing), _left_of(moment.plan, run))


def _first(run: Run) -> str:
    return run.order.origin.first_run_id if run.order.origin else run.run_id


def _order(run: Run, origin: Origin) -> Order:
    """The terms of the old run, without what tied it to other runs, its epic and its crew."""
    return replace(
        run.order, criteria=run.given_criteria, proof_terms=run.proof_terms, rival_run_id="", epic_id="",
        resume=Resume.NO, auto_resume=False, parent_entry="", brings_plan=False, crew=(), reserved=False, origin=origin,
        scheduled=None,
    )  # fmt: skip


def _left_of(plan: Plan, run: Run) -> Plan:
    """The plan without the tasks that were accepted; nothing that is left waits for one of them."""
    done = {task_id for task_id, task in run.tasks.items() if task.status is TaskStatus.ACCEPTED}
    tasks = tuple(
        replace(task, depends=tuple(name for name in task.depends if name not in done))
        for task in plan.tasks
        if task.task_id not in done
    )
    document = json.loads(plan.document)
    written = [task for task in document.get("tasks", ()) if task["id"] not in done]
    for task in written:
        task["depends"] = [name for name in task.get("depends", ()) if name not in done]
    return replace(plan, tasks=tasks, document=json.dumps({**document, "tasks": written}, ensure_ascii=False))
