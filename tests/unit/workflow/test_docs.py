"""The tables in docs/concepts/workflow.md are printed from the data; `python -m tests.unit.workflow.test_docs` renews them."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from pointsman.services.workflow.domain.constraints import BUILTIN_VERIFIERS
from pointsman.services.workflow.domain.enums import WorkflowStatus
from pointsman.services.workflow.domain.transitions import COMMANDS_ALLOWED, TASK_TRANSITIONS, TRANSITIONS
from pointsman.services.workflow.domain.zero_decision_audit import NO_ACTIONS, NO_ANCHOR, RULES
from pointsman.services.workflow.formats.tasks_markdown import FIELDS

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "workflow.md"
BLOCK = re.compile(r"(<!-- printed: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(tuple(head)), *lines[1:]]) + "\n"


def diagram() -> str:
    """The workflow's states as Mermaid."""
    lines = [f"    {row.source} --> {row.target}: {row.meaning}" for row in TRANSITIONS]
    return (
        "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> idle", *lines, "    completed --> [*]", "```"]) + "\n"
    )


def commands() -> str:
    """Which command is taken in which state."""
    rows = (
        [name, *("✓" if status in states else "" for status in WorkflowStatus)]
        for name, states in COMMANDS_ALLOWED.items()
    )
    return table(["command", *WorkflowStatus], rows)


def audit_rules() -> str:
    """What the audit looks for."""
    rows = [[rule.name, "error" if rule.error else "warning"] for rule in RULES]
    return table(["rule", "counts as"], [*rows, [NO_ACTIONS, "error"], [NO_ANCHOR, "warning"]])


PRINTED = {
    "diagram": diagram(),
    "transitions": table(["from", "to", "when"], ([row.source, row.target, row.meaning] for row in TRANSITIONS)),
    "task_transitions": table(
        ["from", "to", "by"], ([row.source, row.target, row.meaning] for row in TASK_TRANSITIONS)
    ),
    "commands": commands(),
    "vocabulary": table(["field", "Chinese", "read as"], ([word.field, word.chinese, word.format] for word in FIELDS)),
    "verifiers": table(["name", "command"], ([name, f"`{command}`"] for name, command in BUILTIN_VERIFIERS.items())),
    "audit": audit_rules(),
}


def renewed(text: str) -> str:
    """The page with every table printed anew."""
    return BLOCK.sub(lambda match: match[1] + PRINTED[match[2]] + match[3], text)


@pytest.mark.parametrize("name", PRINTED)
def test_each_table_is_on_the_page(name: str) -> None:
    assert f"<!-- printed: {name} -->" in PAGE.read_text()


def test_the_tables_on_the_page_are_current() -> None:
    assert renewed(PAGE.read_text()) == PAGE.read_text()


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
