"""Who waits for assignments: the holder of leases, what it wants, and what fits it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.domain.views import LeaseView, OfferedRepository, PollResult
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.others import Others, sought

NOTHING_GIVEN = PollResult()
NO_REPOSITORY = frozenset({""})


class LeaseKey(NamedTuple):
    """Names one lease, with the digest of the secret that shows whose it is."""

    assignment_id: str
    epoch: int
    secret_digest: str


@dataclass(frozen=True, slots=True)
class PollRequest:
    """What an agent wants to be given, and under which idempotency key it asked."""

    holder: Holder
    poll_id: str
    capabilities: frozenset[Capability]
    repository_ids: frozenset[str]
    limit: int = 1
    run_ids: frozenset[str] = frozenset()
    """The runs that it works for; none means every run whose work is not reserved."""
    instead_of: frozenset[str] = frozenset()
    """Accounts that it stands in for: it is given something only while all of them are paused."""
    first_run_ids: frozenset[str] = frozenset()
    """The runs whose work it is given before that of others."""
    offers: tuple[OfferedRepository, ...] = ()
    """What it says about its repositories; of an agent that verifies for all runs only."""
    waits_for_room: bool = False
    """Whether it waits, rather than be refused, while its principal holds all it may: it is just handing in."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many leases may be live at the same time; 0 means as many as there are agents."""

    per_project: int = 0
    overall: int = 0
    per_principal: int = 0


UNLIMITED = Limits()


@dataclass(slots=True, eq=False)
class Waiter:
    """An agent that waits, and what it has been given."""

    wanted: PollRequest
    future: "asyncio.Future[PollResult]"
    deadline: float
    given: list[LeaseView] = field(default_factory=list)
    bundle: PollResult = NOTHING_GIVEN
    refusal: Refusal | None = None
    """Why it is given nothing, however long it waits."""

    @property
    def is_served(self) -> bool:
        """Whether it has as much as it wanted."""
        return len(self.given) >= self.wanted.limit

    def answer(self, now: float) -> None:
        """Answer with what it was given or why it gets nothing, or with nothing when its wait is over."""
        if self.future.done():
            return
        if self.refusal is not None:
            self.future.set_exception(self.refusal)
        elif self.given or self.deadline <= now:
            self.future.set_result(self.bundle)

    def fits(self, row: Any, others: Others) -> bool:
        """Whether the assignment is for this agent: it never judges what it, or its principal, has made."""
        wanted, holder = self.wanted, self.wanted.holder
        return (
            row.project == holder.project
            and (row.entity_id in wanted.run_ids if wanted.run_ids else not row.reserved)
            and self._can_do(row, others)
            and not is_barred_by_name(row, holder.agent_id)
            and (not row.repository_id or row.repository_id in wanted.repository_ids)
            and holder.principal not in row.excluded_principals.split("\n")
            and (row.entity_id, row.excluded_agent, holder.principal) not in others.authors
        )

    def _can_do(self, row: Any, others: Others) -> bool:
        able, researchers = self.wanted.capabilities, others.researchers
        if row.capability not in able:
            return researchers.may_survey(able, row)
        return Capability.SURVEY in able or not researchers.leave_to_surveyor(row)


def is_barred_by_name(row: Any, agent_id: str) -> bool:
    """Whether an agent has the name of an author; only where no principals are written down, since names are chosen."""
    return not row.excluded_principals and bool(row.excluded_agent == agent_id)


def run_of(assignment_id: str) -> str:
    """The run that an assignment belongs to: its id begins with the run's."""
    return assignment_id.rpartition(".")[0]


def held_by(holder: Holder, key: LeaseKey) -> dict[str, Any]:
    """What a lease has to be: of this assignment and epoch, in these hands, with this secret."""
    named = {"of_entity": run_of(key.assignment_id), "of_assignment": key.assignment_id, "of_epoch": key.epoch}
    hands = {"of_project": holder.project, "of_principal": holder.principal, "of_agent": holder.agent_id}
    return {**named, **hands, "of_digest": key.secret_digest}


KindWanted = tuple[str, str, frozenset[str]]
"""Project, capability, and the runs that it is wanted of; none means every run whose work is not reserved."""


def kinds_wanted(waiting: Sequence[Waiter]) -> dict[KindWanted, tuple[int, frozenset[str]]]:
    """How much of each kind of work is waited for, and in which repositories, beside what needs none."""
    kinds: dict[KindWanted, tuple[int, frozenset[str]]] = {}
    for waiter in waiting:
        wanted = waiter.wanted
        for capability in sought(wanted.capabilities):
            for runs in {wanted.run_ids, wanted.first_run_ids or wanted.run_ids}:
                key = (wanted.holder.project, str(capability), runs)
                limit, repositories = kinds.get(key, (0, NO_REPOSITORY))
                kinds[key] = (limit + wanted.limit, repositories | wanted.repository_ids)
    return kinds


def is_first_for(row: Any, waiter: Waiter) -> bool:
    """Whether the assignment is of a run that the agent works for first."""
    return row.entity_id in waiter.wanted.first_run_ids
