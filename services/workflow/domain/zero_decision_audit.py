"""The zero-decision audit: finds words that show an open decision in plans and constraints."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from pointsman.services.workflow.domain.constraints import ConstraintSet
from pointsman.services.workflow.domain.tasks import TaskSpec

MAX_FINDINGS = 200
NO_ACTIONS = "no_actions"
NO_ANCHOR = "no_anchor"


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, and whether a match is an error or a warning."""

    name: str
    pattern: re.Pattern[str]
    error: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a decision is missing."""

    finding_id: str
    subject_id: str
    field: str
    rule: str
    excerpt: str
    error: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of one audit."""

    passed: bool
    findings: tuple[Finding, ...]
    error_count: int
    warning_count: int
    audited_at: datetime


RULES: tuple[Rule, ...] = (
    Rule("undecided", re.compile(r"\b(?:TBD|tbd|TODO)\b|待定|待确认|待讨论", re.ASCII), error=True),
    Rule(
        "depends_on",
        re.compile(r"\bdepend(?:s|ing) on\b|取决于|视[^。；;\n]{1,50}而定", re.ASCII | re.IGNORECASE),
        error=True,
    ),
    Rule("placeholder", re.compile(r"\[[^\[\]\n]{0,200}[?？]\]|\{[^{}\n]{0,200}[?？]\}"), error=True),
    Rule(
        "conditional",
        re.compile(r"\bif (?:needed|necessary)\b|如果需要|可能需要", re.ASCII | re.IGNORECASE),
        error=False,
    ),
    Rule("open_list", re.compile(r"等等|\betc\b|…|\.\.\.", re.ASCII | re.IGNORECASE), error=False),
    Rule("guess", re.compile(r"\b(?:maybe|perhaps)\b|大概|可能(?!需要)|或许", re.ASCII | re.IGNORECASE), error=False),
    Rule("vague", re.compile(r"\bappropriate(?:ly)?\b|适当|合适", re.ASCII | re.IGNORECASE), error=False),
    Rule("code_marker", re.compile(r"\b(?:XXX|FIXME|HACK)\b", re.ASCII), error=False),
)


def audit(tasks: Iterable[TaskSpec], constraints: ConstraintSet, now: datetime) -> Audit:
    """Audits names, requirements and constraints; errors come first."""
    found = [*_task_findings(tasks), *_constraint_findings(constraints)]
    errors = [finding for finding in found if finding.error]
    warnings = [finding for finding in found if not finding.error]
    return Audit(not errors, tuple((errors + warnings)[:MAX_FINDINGS]), len(errors), len(warnings), now)


def findings_in(subject_id: str, field: str, text: str) -> Iterator[Finding]:
    """The findings in one text, at most one per rule."""
    for rule in RULES:
        match = rule.pattern.search(text)
        if match:
            finding_id = f"{subject_id}/{field}/{rule.name}"
            yield Finding(finding_id, subject_id, field, rule.name, match.group()[:100], rule.error)


def _task_findings(tasks: Iterable[TaskSpec]) -> Iterator[Finding]:
    for task in tasks:
        yield from findings_in(task.task_id, "name", task.name)
        yield from findings_in(task.task_id, "requirement", task.requirement)
        if not task.actions:
            yield Finding(f"{task.task_id}/actions/{NO_ACTIONS}", task.task_id, "actions", NO_ACTIONS, "", error=True)
        if not task.files and not task.requirement:
            yield Finding(f"{task.task_id}/task/{NO_ANCHOR}", task.task_id, "task", NO_ANCHOR, "", error=False)


def _constraint_findings(constraints: ConstraintSet) -> Iterator[Finding]:
    for constraint in (*constraints.hard, *constraints.soft):
        yield from findings_in(constraint.constraint_id, "description", constraint.description)
