"""The rules of constraints in plain lists, slow and literal: merged one by one, checked and waived by name."""

from collections.abc import Iterable, Sequence
from typing import Any

HARD_AT_MOST, SOFT_AT_MOST, QUESTIONS_AT_MOST, CRITERIA_AT_MOST = 7, 7, 5, 7
MET = {"passed", "waived"}


class Held:
    """What one workflow holds."""

    def __init__(self) -> None:
        self.hard: list[dict[str, str]] = []
        self.soft: list[dict[str, str]] = []
        self.questions: list[tuple[str, str]] = []
        self.criteria: list[str] = []
        self.begun = False
        """Whether there is anything to merge with: what is held is one of the sets from then on."""

    def merge(self, sets: Sequence[Any]) -> dict[str, Any]:
        """Take sets in; what the limits, and the criteria that not all share, leave out."""
        everyone = [{**self.shown(), "hard": self.hard, "soft": self.soft}, *sets] if self.begun else [*sets]
        hard = self._united(constraint for one in sets for constraint in one["hard"])
        soft = _ranked([constraint for one in everyone for constraint in one["soft"]])
        questions = _first_by_text(question for one in everyone for question in one["questions"])
        named = list(dict.fromkeys(criterion for one in everyone for criterion in one["criteria"]))
        shared = [criterion for criterion in named if all(criterion in one["criteria"] for one in everyone)]
        self.hard, self.soft, self.begun = hard[:HARD_AT_MOST], soft[:SOFT_AT_MOST], True
        self.questions, self.criteria = questions[:QUESTIONS_AT_MOST], shared[:CRITERIA_AT_MOST]
        return {
            "hard": [(one["id"], one["text"]) for one in hard[HARD_AT_MOST:]],
            "soft": [(one["id"], one["text"]) for one in soft[SOFT_AT_MOST:]],
            "questions": questions[QUESTIONS_AT_MOST:],
            "criteria": shared[CRITERIA_AT_MOST:] + [one for one in named if one not in shared],
        }

    def _united(self, coming: Iterable[dict[str, str]]) -> list[dict[str, str]]:
        """Each id with its description once; another description under a taken id gets its model's name behind it."""
        hard = list(self.hard)
        for one in coming:
            if any(one["text"] == kept["text"] and one["id"] in (kept["named"], kept["id"]) for kept in hard):
                continue
            taken = {kept["id"] for kept in hard}
            longer = f"{one['id']}-{one['source']}"
            ids = [one["id"], longer, *(f"{longer}-{number}" for number in range(2, 20))]
            own_id = next(candidate for candidate in ids if candidate not in taken)
            hard.append({"id": own_id, "named": one["id"], "text": one["text"], "state": "unverified"})
        return hard

    def unmet(self) -> list[str]:
        """The hard constraints that stand in the way."""
        return [one["id"] for one in self.hard if one["state"] not in MET]

    def ids(self) -> list[str]:
        """What a check can be about."""
        return [one["id"] for one in (*self.hard, *self.soft)]

    def check(self, constraint_id: str, *, passed: bool) -> None:
        """Note a check; a waiver stays until one passes."""
        for one in (*self.hard, *self.soft):
            if one["id"] == constraint_id and (passed or one["state"] != "waived"):
                one["state"] = "passed" if passed else "failed"

    def waive(self, constraint_id: str) -> bool:
        """Take a hard constraint out of the way; whether there is one of this name."""
        named = [one for one in self.hard if one["id"] == constraint_id]
        for one in named:
            one["state"] = "waived"
        return bool(named)

    def shown(self) -> dict[str, Any]:
        """What a reader sees."""
        return {
            "hard": [(one["id"], one["text"], one["state"]) for one in self.hard],
            "soft": [(one["id"], one["text"], one["state"]) for one in self.soft],
            "questions": self.questions,
            "criteria": self.criteria,
        }


def _ranked(everyone: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The more sets name a description, the earlier it comes; who named it first gives it its id."""
    texts = [one["text"] for one in everyone]
    first = {text: everyone[texts.index(text)] for text in dict.fromkeys(texts)}
    ranked = sorted(first, key=lambda text: len(texts) - texts.count(text))
    return [{"state": "unverified", **first[text]} for text in ranked]


def _first_by_text(questions: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each question once, with who asked it first."""
    first: dict[str, str] = {}
    for text, source in questions:
        first.setdefault(text, source)
    return list(first.items())
