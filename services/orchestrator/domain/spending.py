"""What a run has spent, and what the work that runs holds of its budget until it is known what it used."""

from dataclasses import replace

from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.enums import AssignmentEnd, Capability
from pointsman.services.orchestrator.domain.model import NOTHING_SPENT, Assignment, Budget, Usage
from pointsman.services.orchestrator.domain.run import Run

Spending = events.AssignmentRetried | events.AssignmentEnded | events.Researched


def spend(run: Run, data: Spending) -> Run:
    """Charge the run, and the task that the assignment was for."""
    assignment = run.assignments.get(data.assignment_id)
    task = run.tasks.get(assignment.task_id) if assignment else None
    if assignment is not None and task is not None:
        run.change_task(assignment.task_id, spent=add(task.spent, data.usage))
    if assignment is not None and _is_limited(run.budget) and _tells_use(data):
        name, most = str(assignment.capability), run.dearest.get(str(assignment.capability), NOTHING_SPENT)
        run.change(dearest={**run.dearest, name: _greatest(most, data.usage)})
    return run.change(spent=add(run.spent, data.usage, data.restarts))


def add(spent: Usage, usage: Usage, starts: int = 0) -> Usage:
    """What was spent with what one more start used."""
    tokens, cost_micros = spent.tokens + usage.tokens, spent.cost_micros + usage.cost_micros
    unpriced = spent.unpriced_tokens + usage.unpriced_tokens
    return Usage(spent.assignments + starts, spent.transitions, tokens, cost_micros, unpriced)


def used_up(budget: Budget, spent: Usage) -> dict[str, bool]:
    """Which of the limits on what agents report is reached; a cost that nobody knows reaches every limit."""
    return {
        "tokens": 0 < budget.tokens <= spent.tokens,
        "cost": bool(budget.cost_micros) and (spent.unpriced_tokens > 0 or budget.cost_micros <= spent.cost_micros),
    }


def held_by(run: Run) -> Usage:
    """What the work that runs holds of the budget."""
    if not _is_limited(run.budget):
        return NOTHING_SPENT
    holds = [item.holds for item in run.assignments.values()]
    return Usage(tokens=sum(hold.tokens for hold in holds), cost_micros=sum(hold.cost_micros for hold in holds))


def lacks_room(run: Run, capability: Capability) -> str:
    """What of the budget is held by work that runs, so that this one has to wait; a start alone never waits.

    A start holds what the dearest of its kind in the run has used; the first of a kind, all that is left.
    """
    if not _is_limited(run.budget) or not any(_is_paid(item.capability) for item in run.assignments.values()):
        return ""
    budget, spent, held = run.budget, run.spent, held_by(run)
    expected = run.dearest.get(str(capability), Usage(tokens=budget.tokens, cost_micros=budget.cost_micros))
    lacks = {
        "tokens": 0 < budget.tokens < spent.tokens + held.tokens + expected.tokens,
        "cost": 0 < budget.cost_micros < spent.cost_micros + held.cost_micros + expected.cost_micros,
    }
    return ", ".join(name for name, too_much in lacks.items() if too_much)


def with_hold(run: Run, assignment: Assignment) -> Assignment:
    """The work with what it holds of the budget from its start on."""
    budget, spent, held = run.budget, run.spent, held_by(run)
    if not _is_limited(budget) or not _is_paid(assignment.capability):
        return assignment
    left = Usage(
        tokens=max(0, budget.tokens - spent.tokens - held.tokens),
        cost_micros=max(0, budget.cost_micros - spent.cost_micros - held.cost_micros),
    )
    expected = run.dearest.get(str(assignment.capability), left)
    return replace(assignment, holds=Usage(
        tokens=expected.tokens if budget.tokens else 0,
        cost_micros=expected.cost_micros if budget.cost_micros else 0,
    ))  # fmt: skip


def next_number(run: Run) -> int:
    """The number of the next piece of work; one that was held back and dropped leaves its number unused."""
    return max(run.named, run.spent.assignments + len(run.held)) + 1


def count_named(run: Run, assignment_id: str) -> Run:
    """Remember that a number was given, once the budget has held something back."""
    is_new = all(item.assignment_id != assignment_id for item in run.held)
    return run.change(named=next_number(run)) if is_new else run


def _is_limited(budget: Budget) -> bool:
    return bool(budget.tokens or budget.cost_micros)


def _is_paid(capability: Capability) -> bool:
    """The verifier starts no agent."""
    return capability is not Capability.VERIFY


def _tells_use(data: Spending) -> bool:
    """Whether it tells what such work uses: a result does, a failure only with what it used."""
    is_failure = isinstance(data, events.AssignmentRetried) or (
        isinstance(data, events.AssignmentEnded) and data.end is not AssignmentEnd.DONE
    )
    return not is_failure or bool(data.usage.tokens or data.usage.cost_micros)


def _greatest(one: Usage, other: Usage) -> Usage:
    return Usage(tokens=max(one.tokens, other.tokens), cost_micros=max(one.cost_micros, other.cost_micros))
