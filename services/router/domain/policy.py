"""A project's policy: whether decisions bind, and the rules it adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.machine import Decision, Event, Machine
from pointsman.services.router.domain.patterns import compile_pattern
from pointsman.services.router.domain.rule_document import OwnRule, RuleProblem

KIND = "policy"
IN_FORCE = "IN_FORCE"


class PolicyEvent(StrEnum):
    """What happens to a policy."""

    POLICY_SET = "POLICY_SET"


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The policy that holds from now on."""

    revision: int
    hard_routing: bool
    rules: tuple[OwnRule, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """A project's policy; revision 0 was never set."""

    revision: int
    hard_routing: bool
    rules: tuple[OwnRule, ...] = ()
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Replace the policy."""

    entity_id: str
    hard_routing: bool
    rules: tuple[OwnRule, ...]
    expected_revision: int | None


def policy_id(project: str) -> str:
    """The policy of a project."""
    return f"policy:{project}"


def check_rules(rules: tuple[OwnRule, ...]) -> None:
    """Refuse rules that cannot be taken, naming the first."""
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
    """Take the new policy if its rules can be taken and it was made from the one that holds."""
    revision = 0 if state is None else state.revision
    if command.expected_revision is not None and command.expected_revision != revision:
        metadata = {"kind": KIND, "id": command.entity_id}
        raise Refusal(Reason.LOST_RACE, f"the policy is at revision {revision}; read it again", metadata=metadata)
    check_rules(command.rules)
    changed = PolicySet(revision + 1, command.hard_routing, command.rules)
    answer = Policy(changed.revision, changed.hard_routing, changed.rules, now)
    source = "" if state is None else IN_FORCE
    return Decision([Event(PolicyEvent.POLICY_SET, source, IN_FORCE, changed)], answer)


def apply(state: Policy | None, event: Event, at: datetime) -> Policy:  # noqa: ARG001 - a new policy replaces the old
    """Fold one event."""
    changed: PolicySet = event.data
    return Policy(changed.revision, changed.hard_routing, changed.rules, at)


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
