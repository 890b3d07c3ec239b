"""The machine of a project's policy: whether decisions bind, and the rules that the project adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.machine import Decision, Event, Machine
from pointsman.services.router.domain.enums import Doubt
from pointsman.services.router.domain.patterns import compile_pattern
from pointsman.services.router.domain.rule_document import OwnRule, RuleProblem

KIND = "policy"
IN_FORCE = "IN_FORCE"


class PolicyEvent(StrEnum):
    """Journal events of a policy."""

    POLICY_SET = "POLICY_SET"


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The new policy."""

    revision: int
    hard_routing: bool
    rules: tuple[OwnRule, ...]
    doubt: Doubt = Doubt.BALANCED


@dataclass(frozen=True, slots=True)
class Policy:
    """State of a project's policy; revision 0 is the default that was never set."""

    revision: int
    hard_routing: bool
    rules: tuple[OwnRule, ...] = ()
    updated_at: datetime | None = None
    doubt: Doubt = Doubt.BALANCED


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Replaces the policy."""

    entity_id: str
    hard_routing: bool
    rules: tuple[OwnRule, ...]
    expected_revision: int | None
    doubt: Doubt = Doubt.BALANCED


def policy_id(project: str) -> str:
    """The entity id of a project's policy."""
    return f"policy:{project}"


def check_rules(rules: tuple[OwnRule, ...]) -> None:
    """Refuses invalid rules, naming the first."""
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise _invalid(RuleProblem(rule.id, "the id is used twice"))
        seen.add(rule.id)
        try:
            compile_pattern(rule.id, f"(?i){rule.pattern}")
        except RuleProblem as problem:
            raise _invalid(problem) from None


def _invalid(problem: RuleProblem) -> Refusal:
    return Refusal(Reason.INVALID_RULE, str(problem), metadata={"rule": problem.rule, "problem": problem.problem})


def decide(state: Policy | None, command: SetPolicy, now: datetime) -> Decision:
    """Accepts a new policy if its rules are valid and the expected revision is the current one."""
    revision = 0 if state is None else state.revision
    if command.expected_revision is not None and command.expected_revision != revision:
        metadata = {"kind": KIND, "id": command.entity_id}
        raise Refusal(Reason.LOST_RACE, f"the policy is at revision {revision}; read it again", metadata=metadata)
    check_rules(command.rules)
    changed = PolicySet(revision + 1, command.hard_routing, command.rules, command.doubt)
    answer = Policy(changed.revision, changed.hard_routing, changed.rules, now, changed.doubt)
    source = "" if state is None else IN_FORCE
    return Decision([Event(PolicyEvent.POLICY_SET, source, IN_FORCE, changed)], answer)


def apply(state: Policy | None, event: Event, at: datetime) -> Policy:  # noqa: ARG001 - a new policy replaces the old
    """Applies one event."""
    changed: PolicySet = event.data
    return Policy(changed.revision, changed.hard_routing, changed.rules, at, changed.doubt)


EVENTS: Mapping[str, type] = {PolicyEvent.POLICY_SET: PolicySet}

MACHINE: Machine[Policy] = Machine(
    kind=KIND,
    version=1,
    state_type=Policy,
    decide=decide,
    apply=apply,
    status=lambda _policy: IN_FORCE,
    run_id=lambda _policy: "",
    events=EVENTS,
    answers={SetPolicy: Policy},
)
