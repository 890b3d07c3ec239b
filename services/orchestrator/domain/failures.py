"""Whether two failures are the same: by the tests that failed, else by their texts without paths and numbers."""

import re
from collections.abc import Sequence

from pointsman.services.orchestrator.domain.model import Failure

_TEST = re.compile(
    r"(?:FAILED|ERROR)\s+(?P<pytest>\S+::\S+)"
    r"|(?P<listed>\S+::\S+)\s+(?:FAILED|ERROR)"
    r"|--- FAIL: (?P<go>\S+)"
    r"|^test (?P<cargo>\S+) \.\.\. FAILED"
    r"|^(?:FAIL|ERROR): (?P<unittest>\w+ \([\w.]+\))"
    r"|^not ok \d+ -? ?(?P<tap>.+)$",
    re.MULTILINE,
)
_NUMBER = re.compile(r"\d+")


PLAN_PROBLEM = "plan.tasks: "
"""How a reason begins that tells what is wrong with a plan."""
TWICE_ALIKE = ", twice for the same reason"
CONFLICT = "conflict in "
"""How a reason begins that tells of a merge conflict: it comes from others' work, and the next try has another base."""


def is_same_failure(one: Failure, other: Failure) -> bool:
    """Whether two attempts at a task failed in the same way: the same set of tests, else the same error."""
    if not one.reason.strip() or one.reason.startswith(CONFLICT):
        return False
    if one.failing and other.failing:
        return frozenset(one.failing) == frozenset(other.failing)
    return fingerprint(one.reason) == fingerprint(other.reason)


def failed_alike(setbacks: Sequence[str]) -> bool:
    """Whether the last two agents on one assignment failed in the same way: a third start would be paid in vain.

    A plan that is there and has problems goes back with them twice, whatever they are.
    """
    if len(setbacks) < 2 or setbacks[-1].startswith(PLAN_PROBLEM):
        return False
    return is_same_failure(Failure(setbacks[-1]), Failure(setbacks[-2]))


def fingerprint(reason: str) -> frozenset[str] | str:
    """The failing tests that a reason names; where it names none, its words."""
    failing = frozenset(next(filter(None, found.groups())).strip() for found in _TEST.finditer(reason))
    if failing:
        return failing
    words = (word for word in reason.casefold().split() if "/" not in word and "\\" not in word)
    return " ".join(_NUMBER.sub("", " ".join(words)).split())
