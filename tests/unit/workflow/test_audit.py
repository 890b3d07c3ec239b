"""The zero-decision audit, rule by rule."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pointsman.services.workflow.domain.constraints import Constraint, ConstraintSet
from pointsman.services.workflow.domain.enums import ConstraintType
from pointsman.services.workflow.domain.zero_decision_audit import MAX_FINDINGS, RULES, audit, findings_in
from tests.unit.workflow.flow import spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING = ConstraintSet()


def rules_in(text: str) -> list[tuple[str, bool]]:
    return [(finding.rule, finding.error) for finding in findings_in("t", "name", text)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("colour TBD", "undecided"),
        ("TODO: name it", "undecided"),
        ("颜色待定", "undecided"),
        ("返回格式TBD", "undecided"),
        ("待确认的字段", "undecided"),
        ("格式待讨论", "undecided"),
        ("depends on the backend", "depends_on"),
        ("Depending on load", "depends_on"),
        ("取决于后端", "depends_on"),
        ("视后端情况而定", "depends_on"),
        ("use [redis?] here", "placeholder"),
        ("store in {which table?}", "placeholder"),
        ("选择 [方案？]", "placeholder"),
    ],
)
def test_an_open_decision_is_an_error(text: str, rule: str) -> None:
    assert rules_in(text) == [(rule, True)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("add an index if needed", "conditional"),
        ("如果需要则缓存", "conditional"),
        ("可能需要迁移", "conditional"),
        ("logs, metrics, etc.", "open_list"),
        ("日志、指标等等", "open_list"),
        ("logs, metrics…", "open_list"),
        ("maybe later", "guess"),
        ("Perhaps cached", "guess"),
        ("大概三个", "guess"),
        ("可能较慢", "guess"),
        ("或许可行", "guess"),
        ("an appropriate size", "vague"),
        ("适当的大小", "vague"),
        ("合适的名字", "vague"),
        ("XXX look again", "code_marker"),
        ("FIXME", "code_marker"),
        ("这里FIXME再看", "code_marker"),
        ("HACK around it", "code_marker"),
    ],
)
def test_a_vague_word_is_a_warning(text: str, rule: str) -> None:
    assert rules_in(text) == [(rule, False)]


@pytest.mark.parametrize(
    "text", ["a todo list page", "the stubborn case", "sketch it", "hackathon page", "items[0]", "what is new?", "{x}"]
)
def test_words_that_only_look_alike_are_nothing(text: str) -> None:
    assert rules_in(text) == []


def test_a_task_needs_actions_and_a_file_or_a_requirement() -> None:
    found = audit([spec("t")], NOTHING, NOW)
    assert [(one.finding_id, one.error) for one in found.findings] == [
        ("t/actions/no_actions", True),
        ("t/task/no_anchor", False),
    ]
    assert not found.passed


@pytest.mark.parametrize("anchor", [{"files": ("a.py",)}, {"requirement": "it works"}])
def test_a_task_with_an_anchor_and_actions_passes(anchor: dict[str, Any]) -> None:
    found = audit([spec("t", actions=("edit",), **anchor)], NOTHING, NOW)
    assert found.passed
    assert found.findings == ()


def test_names_requirements_and_constraints_are_looked_through() -> None:
    held = ConstraintSet(
        hard=(Constraint("C1", "limit TBD", ConstraintType.HARD),),
        soft=(Constraint("C2", "maybe fast", ConstraintType.SOFT),),
    )
    found = audit([spec("t", name="TBD", requirement="TODO", actions=("x",))], held, NOW)
    assert [one.finding_id for one in found.findings] == [
        "t/name/undecided",
        "t/requirement/undecided",
        "C1/description/undecided",
        "C2/description/guess",
    ]
    assert (found.error_count, found.warning_count) == (3, 1)


def test_findings_are_bounded_and_errors_come_first() -> None:
    found = audit([spec(f"t{n}", actions=("x",)) for n in range(300)] + [spec("z", requirement="r")], NOTHING, NOW)
    assert len(found.findings) == MAX_FINDINGS
    assert found.findings[0].finding_id == "z/actions/no_actions"
    assert found.warning_count == 300


def test_each_rule_is_linear_in_its_text() -> None:
    for rule in RULES:
        for text in ("[" * 4000, "视" * 4000, "{a" * 2000, "if " * 1300):
            assert len(list(rule.pattern.finditer(text))) == 0
