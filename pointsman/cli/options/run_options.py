"""Parses options of runs: budget, barrier timeout, pipeline template, the point to go on from."""

from collections.abc import Iterable

from pointsman import project
from pointsman.api.handoff.v1.handoff_pb2 import AcceptanceCriterion
from pointsman.api.orchestrator.v1.run_pb2 import Budget
from pointsman.cli.options.usage import fail_usage
from pointsman.client import Again

BUDGET_FIELDS = ("assignments", "transitions", "fan_out", "tokens", "cost_micros")
MAX_BARRIER_SECONDS = 604_800
MICROS_PER_DOLLAR = 1_000_000


def read_budget(given: str) -> Budget:
    """Parses `assignments=50,minutes=30`; a ValueError says what is wrong."""
    budget = Budget()
    for part in given.split(","):
        name, _, value = part.strip().partition("=")
        if not value.isdigit() or name.strip() not in (*BUDGET_FIELDS, "minutes"):
            raise ValueError(f"takes {', '.join(BUDGET_FIELDS)} and minutes, each with a number; not '{part}'")
        if name.strip() == "minutes":
            budget.wall_clock.FromSeconds(int(value) * 60)
        else:
            setattr(budget, name.strip(), int(value))
    return budget


def parse_budget(given: str) -> Budget | None:
    """Parses --budget; None where it is not given."""
    if not given:
        return None
    try:
        return read_budget(given)
    except ValueError as error:
        fail_usage(f"--budget {error}")


def budget_of(given: project.Budget) -> Budget | None:
    """The budget of a project file, as the orchestrator takes it; None for one that says nothing."""
    if given == project.Budget():
        return None
    budget = Budget(
        assignments=given.assignments, tokens=given.tokens, cost_micros=round(given.cost_usd * MICROS_PER_DOLLAR)
    )
    if given.minutes:
        budget.wall_clock.FromSeconds(given.minutes * 60)
    return budget


def parse_barrier_timeout(given: float | None) -> float:
    """Checks --barrier-timeout; 0 leaves it to the pipeline service."""
    if given is not None and not 1 <= given <= MAX_BARRIER_SECONDS:
        fail_usage(f"--barrier-timeout takes seconds from 1 to {MAX_BARRIER_SECONDS}")
    return given or 0.0


def parse_template(name: str) -> str:
    """The name of a pipeline template in the spelling of the pipeline service."""
    from pointsman.services.pipeline.domain.templates import TEMPLATES

    known = {one.lower(): one for one in TEMPLATES}
    if name and name.lower() not in known:
        fail_usage(f"there is no pipeline '{name}'; known are {', '.join(TEMPLATES)}")
    return known.get(name.lower(), "")


def criteria_in_words(statements: Iterable[str]) -> list[AcceptanceCriterion]:
    """The criteria of --accept: A1, A2, … in their order."""
    return [
        AcceptanceCriterion(id=f"A{number}", statement=statement, required=True)
        for number, statement in enumerate(statements, 1)
    ]


def parse_point(given: str) -> Again:
    """Parses --from: plan, wave:N or task:T."""
    kind, _, name = given.strip().partition(":")
    if kind == "wave" and name.isdecimal() and int(name) > 0:
        return Again(wave=int(name))
    if kind == "task" and name:
        return Again(task_id=name)
    if given.strip() != "plan":
        fail_usage(f"--from takes plan, wave:N (1 is the first) or task:T; not '{given}'")
    return Again()
