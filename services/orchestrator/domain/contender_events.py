"""What the journal says about contenders: several works of one attempt at a task, of which one is chosen."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain.enums import Grade
from pointsman.services.orchestrator.domain.model import Work


@dataclass(frozen=True, slots=True)
class ContenderHandedIn:
    """A coder handed in its work beside others on the same task."""

    task_id: str
    number: int
    work: Work
    principal: str = ""


@dataclass(frozen=True, slots=True)
class ContenderProven:
    """The verifier proved a contender, or refuted it."""

    task_id: str
    number: int
    agent_id: str
    passed: bool
    document: str
    grade: Grade | None = None
    reason: str = ""
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContenderChosen:
    """A contender is the work of the task from now on."""

    task_id: str
    number: int
    reason: str = ""
