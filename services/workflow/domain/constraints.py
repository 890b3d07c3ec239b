"""Constraints: merged, verified by recorded checks, waived by name; what a merge drops is reported."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pointsman.services.workflow.domain.enums import (
    Category,
    ConstraintPhase,
    ConstraintType,
    SourceModel,
    Verification,
)

HARD_LIMIT = 7
SOFT_LIMIT = 7
QUESTION_LIMIT = 5
CRITERIA_LIMIT = 7
BUILTIN_VERIFIERS = {
    "ts_typecheck": "pnpm tsc --noEmit",
    "lint": "pnpm lint",
    "test": "pnpm test",
    "build": "pnpm build",
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """One rule that must (hard) or should (soft) be met."""

    constraint_id: str
    description: str
    type: ConstraintType
    category: Category = Category.REQUIREMENT
    source_model: SourceModel = SourceModel.USER
    phase: ConstraintPhase = ConstraintPhase.ANALYSIS
    verify_cmd: str = ""
    verification: Verification = Verification.UNVERIFIED
    details: str = ""

    @property
    def met(self) -> bool:
        """Whether it is verified or waived."""
        return self.verification in (Verification.PASSED, Verification.WAIVED)


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question, and who asked it."""

    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ConstraintSet:
    """The constraints, questions and criteria of one model, or of a workflow."""

    hard: tuple[Constraint, ...] = ()
    soft: tuple[Constraint, ...] = ()
    open_questions: tuple[OpenQuestion, ...] = ()
    success_criteria: tuple[str, ...] = ()

    @property
    def unmet(self) -> tuple[str, ...]:
        """The hard constraints that are neither verified nor waived."""
        return tuple(constraint.constraint_id for constraint in self.hard if not constraint.met)

    @property
    def empty(self) -> bool:
        """Whether it has no entries."""
        return not (self.hard or self.soft or self.open_questions or self.success_criteria)


NO_CONSTRAINTS = ConstraintSet()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a client's check of a constraint."""

    constraint_id: str
    passed: bool
    details: str
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The merged set, and what the rules of the merge dropped."""

    merged: ConstraintSet
    dropped: ConstraintSet


def merge(sets: Sequence[ConstraintSet]) -> MergeResult:
    """Merges sets within limits: hard by union, soft by frequency, questions by union, criteria by intersection."""
    hard = _distinct(constraint for one in sets for constraint in one.hard)
    soft = _by_frequency([constraint for one in sets for constraint in one.soft])
    questions = _questions(sets)
    criteria, dropped = _criteria(sets)
    return MergeResult(
        ConstraintSet(hard[:HARD_LIMIT], soft[:SOFT_LIMIT], questions[:QUESTION_LIMIT], criteria[:CRITERIA_LIMIT]),
        ConstraintSet(
            hard[HARD_LIMIT:], soft[SOFT_LIMIT:], questions[QUESTION_LIMIT:], (*criteria[CRITERIA_LIMIT:], *dropped)
        ),
    )


def record(constraints: ConstraintSet, result: CheckResult) -> ConstraintSet:
    """The set with one recorded result; a waiver stays until a check passes."""
    verification = Verification.PASSED if result.passed else Verification.FAILED

    def checked(constraint: Constraint) -> Constraint:
        if constraint.verification is Verification.WAIVED and not result.passed:
            return constraint
        return replace(constraint, verification=verification, details=result.details)

    return _changed(constraints, result.constraint_id, checked)


def waive(constraints: ConstraintSet, constraint_id: str, reason: str) -> ConstraintSet:
    """The set with one constraint waived."""
    return _changed(
        constraints, constraint_id, lambda one: replace(one, verification=Verification.WAIVED, details=reason)
    )


def find(constraints: ConstraintSet, constraint_id: str) -> Constraint | None:
    """The constraint of this id, if there is one."""
    both = (*constraints.hard, *constraints.soft)
    return next((one for one in both if one.constraint_id == constraint_id), None)


def _changed(
    constraints: ConstraintSet, constraint_id: str, change: Callable[[Constraint], Constraint]
) -> ConstraintSet:
    def changed(listed: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
        return tuple(change(one) if one.constraint_id == constraint_id else one for one in listed)

    return replace(constraints, hard=changed(constraints.hard), soft=changed(constraints.soft))


def _distinct(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Each (id, description) once; another description with a used id gets a new id."""
    distinct: dict[str, Constraint] = {}
    seen: set[tuple[str, str]] = set()
    for constraint in constraints:
        key = (constraint.constraint_id, constraint.description)
        if key in seen or _is_renamed_duplicate(constraint, distinct):
            continue
        seen.add(key)
        own_id = _unused_id(constraint, distinct)
        distinct[own_id] = replace(constraint, constraint_id=own_id)
    return tuple(distinct.values())


def _is_renamed_duplicate(constraint: Constraint, stored: dict[str, Constraint]) -> bool:
    """Whether an earlier merge stored the same description under this id plus the name of its model."""
    return any(
        one.description == constraint.description and _is_long_id(own_id, constraint.constraint_id, one.source_model)
        for own_id, one in stored.items()
    )


def _is_long_id(own_id: str, constraint_id: str, source_model: SourceModel) -> bool:
    suffix = own_id.removeprefix(f"{constraint_id}-{source_model}")
    return suffix != own_id and (not suffix or suffix.removeprefix("-").isdecimal())


def _unused_id(constraint: Constraint, used: dict[str, Constraint]) -> str:
    if constraint.constraint_id not in used:
        return constraint.constraint_id
    number, candidate = 1, _long_id(constraint)
    while candidate in used:
        number += 1
        candidate = f"{_long_id(constraint)}-{number}"
    return candidate


def _long_id(constraint: Constraint) -> str:
    return f"{constraint.constraint_id}-{constraint.source_model}"


def _by_frequency(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    first: dict[str, Constraint] = {}
    frequency: dict[str, int] = {}
    for constraint in constraints:
        first.setdefault(constraint.description, constraint)
        frequency[constraint.description] = frequency.get(constraint.description, 0) + 1
    ranked = sorted(first.values(), key=lambda one: -frequency[one.description])
    return _distinct(ranked)


def _questions(sets: Sequence[ConstraintSet]) -> tuple[OpenQuestion, ...]:
    first: dict[str, OpenQuestion] = {}
    for one in sets:
        for question in one.open_questions:
            first.setdefault(question.text, question)
    return tuple(first.values())


def _criteria(sets: Sequence[ConstraintSet]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    named = tuple(dict.fromkeys(criterion for one in sets for criterion in one.success_criteria))
    common = tuple(one for one in named if all(one in listed.success_criteria for listed in sets))
    return common, tuple(one for one in named if one not in common)
