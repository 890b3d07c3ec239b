"""Whether two failures are the same: by the tests that failed, else by their texts without paths and numbers."""

import re

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


CONFLICT = "conflict in "
"""How a reason begins that tells of a merge conflict: it comes from others' work, and the next try has another base."""


def is_same_failure(one: str, other: str) -> bool:
    """Whether two reasons tell of the same failure of the task itself."""
    return bool(one.strip()) and not one.startswith(CONFLICT) and fingerprint(one) == fingerprint(other)


def fingerprint(reason: str) -> frozenset[str] | str:
    """The failing tests that a reason names; where it names none, its words."""
    failing = frozenset(next(filter(None, found.groups())).strip() for found in _TEST.finditer(reason))
    if failing:
        return failing
    words = (word for word in reason.casefold().split() if "/" not in word and "\\" not in word)
    return " ".join(_NUMBER.sub("", " ".join(words)).split())
