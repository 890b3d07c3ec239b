"""Loads and checks the versioned rule file; an invalid one is refused with file, rule and reason."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import msgspec

from pointsman.services.router.domain.classification.rule_book import (
    RuleBook,
    build_rule_book,
    check_rule_book,
    with_doubt,
    with_own_rules,
)
from pointsman.services.router.domain.classification.second_layer import SecondLayer
from pointsman.services.router.domain.enums import Doubt
from pointsman.services.router.domain.rule_document import OwnRule, RuleDocument, RuleProblem

RULE_FILE = Path(__file__).with_name("routing.json")
WEIGHT_FILE = Path(__file__).with_name("weights.json")


class RuleFileRefused(Exception):
    """A rule file is invalid: the file, the rule and the reason."""

    def __init__(self, file: str, rule: str, problem: str) -> None:
        super().__init__(f"{file}: rule '{rule}': {problem}")
        self.file = file
        self.rule = rule
        self.problem = problem


@functools.cache
def standard_rule_book() -> RuleBook:
    """The rule set that comes with the router; tests check it completely, so that a start need not compile every language."""
    return _load(RULE_FILE, whole=False)


def load_rule_book(file: Path) -> RuleBook:
    """Reads, checks and compiles a whole rule file."""
    return _load(file, whole=True)


def _load(file: Path, *, whole: bool) -> RuleBook:
    raw = _decode(file, Any)
    document = _decode(file, RuleDocument)
    _refuse_unknown(str(file), "", raw, msgspec.to_builtins(document))
    try:
        book = build_rule_book(document)
        if whole:
            check_rule_book(book)
    except RuleProblem as problem:
        raise RuleFileRefused(str(file), problem.rule, problem.problem) from None
    return dataclasses.replace(book, layer=second_layer())


@functools.cache
def second_layer() -> SecondLayer:
    """The second layer that comes with the router."""
    layer: SecondLayer = _decode(WEIGHT_FILE, SecondLayer)
    return layer


def load_own_rules(file: Path) -> tuple[OwnRule, ...]:
    """Reads a project's own rules: a JSON list of objects with id, effect, pattern and description."""
    raw = _decode(file, Any)
    if not isinstance(raw, list):
        raise RuleFileRefused(str(file), "$", "a list of rules is needed, each with id, effect and pattern")
    return tuple(_own_rule(str(file), number, item) for number, item in enumerate(raw, 1))


def _own_rule(file: str, number: int, item: Any) -> OwnRule:
    """Reads one own rule; an invalid one is named by its id, or by its number if it has none."""
    given = item.get("id") if isinstance(item, dict) else None
    name = given if isinstance(given, str) and given else f"number {number}"
    known = [field.name for field in dataclasses.fields(OwnRule)]
    for key in item if isinstance(item, dict) else ():
        if key not in known:
            raise RuleFileRefused(file, name, f"nothing reads the key '{key}'; known are {', '.join(known)}")
    try:
        return msgspec.convert(item, OwnRule)
    except msgspec.ValidationError as error:
        raise RuleFileRefused(file, name, str(error).replace(" - at `$.", " - at `")) from None


def _decode(file: Path, shape: Any) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes(), type=shape)
    except msgspec.MsgspecError as error:
        problem, _, place = str(error).partition(" - at ")
        raise RuleFileRefused(str(file), place.strip("`").removeprefix("$.") or "$", problem) from None
    except OSError as error:
        raise RuleFileRefused(str(file), "$", error.strerror or "it cannot be read") from None


def _refuse_unknown(file: str, place: str, raw: Any, known: Any) -> None:
    """Refuses keys that nothing reads."""
    if not isinstance(raw, dict):
        return
    for key, value in raw.items():
        if key not in known:
            raise RuleFileRefused(file, f"{place}{key}", "nothing reads this key")
        _refuse_unknown(file, f"{place}{key}.", value, known[key])


@functools.lru_cache(maxsize=128)
def rule_book_with(own: tuple[OwnRule, ...], doubt: Doubt = Doubt.BALANCED) -> RuleBook:
    """The standard rule set with a project's own rules and its setting for doubt, cached by both."""
    return with_own_rules(with_doubt(standard_rule_book(), doubt), own)
