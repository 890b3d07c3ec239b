"""`python -m tests.unit.router.deciding`: everything decided about texts, one JSON string a line, by whichever form is imported."""

import json
import sys

from pointsman.services.router.domain import classify as module
from pointsman.services.router.domain.language.rule_document import OwnRule, RuleEffect
from pointsman.services.router.domain.rulebook import with_own_rules
from pointsman.services.router.rules import standard_rule_book

OWN = [OwnRule(id=effect.value, pattern=effect.value[:3], effect=effect) for effect in RuleEffect]


def is_compiled() -> bool:
    """Whether the form that is imported here is the compiled one."""
    return not str(module.__file__).endswith(".py")


def decided(texts: list[str]) -> list[str]:
    """Each text's decisions, whole: as it is, debated before, and under a project's own rules."""
    book = standard_rule_book()
    own = with_own_rules(book, OWN)
    return [
        ascii(
            (module.classify(book, text), module.classify(book, text, already_debated=True), module.classify(own, text))
        )
        for text in texts
    ]


def main() -> None:
    """Answer what stands on standard input."""
    assert is_compiled()
    json.dump(decided(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
