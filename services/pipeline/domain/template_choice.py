"""Chooses the template of a task: ordered rules, each a list of words; the first that matches decides."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.pipeline.domain.templates import NONE, TEMPLATES

EXPLICIT = re.compile(r"\[pipeline:([^\]\s]{0,64})\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Classification:
    """The template, the rule that chose it, and the text that matched."""

    template: str
    rule: str
    matched: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule matches if one of its words occurs and none of the excluding words does."""

    name: str
    template: str
    words: re.Pattern[str]
    excludes: re.Pattern[str] | None = None


def _any_of(*words: str) -> re.Pattern[str]:
    """A pattern for any of the words: whole Latin words (also next to Chinese), Chinese and Japanese words anywhere."""
    latin = [word for word in words if word.isascii()]
    other = [word for word in words if not word.isascii()]
    return re.compile("|".join([rf"(?<![A-Za-z0-9_])(?:{'|'.join(latin)})(?![A-Za-z0-9_])", *other]), re.IGNORECASE)


_CODE_WORK = _any_of(
    "implement", "build", "refactor", "rewrite", "code",
    "fix(?! (?:an? |the |some )?(?:typos?|spelling|grammar|wording|(?:broken |dead )?links?))", "add (?:an? )?(?:feature|endpoint|api|function|class|page)",
    "實作", "实现", "開發", "开发", "重構", "重构", "実装",
    "修(?:復|复|正)(?!.{0,20}(?:錯字|错字|誤字))",
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    Rule(
        "docs-only", "docs-only",
        _any_of("readme", "docs?", "documentation", "changelog", "docstrings?", "typos? in the (?:docs?|readme)",
                "文件", "文档", "說明", "说明", "ドキュメント"),
        _CODE_WORK,
    ),
    Rule(
        "review-only", "review-only",
        _any_of("review", "code review", "look over", "audit the code", "審查", "审查", "評審", "评审", "レビュー"),
        _any_of("and fix", "then fix", "implement", "build", "並修復", "并修复", "修復", "修复", "実装", "修正"),
    ),
    Rule(
        "test-first", "test-first",
        _any_of("tdd", "test[- ]first", "test[- ]driven", "failing test first", "write (?:the )?tests? first",
                "測試先行", "测试先行", "先寫測試", "先写测试", "テスト駆動"),
    ),
    Rule(
        "security", "security",
        _any_of("security", "vulnerabilit(?:y|ies)", "cve-[0-9-]+", "xss", "csrf", "sql injection", "injection",
                "secrets?", "安全", "漏洞", "脆弱性", "セキュリティ"),
    ),
    Rule(
        "large", "full",
        _any_of("from scratch", "whole (?:system|application|app|product)", "entire (?:system|application|app|product)",
                "re-?architect", "new (?:service|system|platform|product|application)", "end[- ]to[- ]end",
                "migrate (?:the )?(?:whole|entire)", "從零", "从零", "整個系統", "整个系统", "大型", "全面", "ゼロから"),
    ),
    Rule(
        "ui", "ui-only",
        _any_of("ui", "css", "layout", "styling", "styles?", "button", "dark mode", "responsive", "colou?rs?", "landing page",
                "介面", "界面", "樣式", "样式", "按鈕", "按钮", "画面", "レイアウト"),
    ),
    Rule(
        "small-fix", "fix",
        _any_of("typo", "rename", "small fix", "quick fix", "one[- ]liner?", "hotfix", "bump", "off[- ]by[- ]one",
                "fix (?:the |a |an |this )?(?:\\w+ )?(?:bug|error|crash|warning|lint|import|test)",
                "小修", "修復", "修复", "錯字", "错字", "改名", "バグ修正", "誤字"),
    ),
    Rule(
        "feature", "standard",
        _any_of("feature", "implement", "build", "create", "develop", "support for", "add", "integrate", "refactor", "rewrite",
                "功能", "實作", "实现", "新增", "開發", "开发", "重構", "重构", "実装", "追加", "機能"),
    ),
)  # fmt: skip
"""The first rule that matches decides."""

RULE_NAMES: tuple[str, ...] = ("explicit", "answer", *(rule.name for rule in RULES), "default")
DEFAULT = Classification("quick-dev", "default")
_BY_LOWER_ID: Mapping[str, str] = {template_id.lower(): template_id for template_id in TEMPLATES}


def classify(text: str, *, answer_only: bool = False) -> Classification:
    """The template of a task: the one that the text names, none for an answer, else that of the first matching rule."""
    named = EXPLICIT.search(text)
    if named:
        return _explicit(named.group(1), named.group(0))
    if answer_only:
        return Classification(NONE, "answer")
    for rule in RULES:
        found = rule.words.search(text)
        if found and not (rule.excludes and rule.excludes.search(text)):
            return Classification(rule.template, rule.name, found.group(0)[:100])
    return DEFAULT


def _explicit(template_id: str, matched: str) -> Classification:
    known = _BY_LOWER_ID.get(template_id.lower())
    if known is None:
        raise invalid_field("text", f"unknown pipeline '{template_id}'; known are {', '.join(TEMPLATES)}")
    return Classification(known, "explicit", matched)
