"""Chooses which models work together, by the size and side of the intake text."""

import re
from dataclasses import dataclass

from pointsman.services.workflow.domain.dependency_classes import latin_words
from pointsman.services.workflow.domain.enums import Model, Side, Size


@dataclass(frozen=True, slots=True)
class Collaboration:
    """The leading model, the supporting ones, and the phases that run in parallel."""

    mode: str
    lead: str = ""
    support: tuple[str, ...] = ()
    parallel_phases: tuple[str, ...] = ()
    reason: str = ""
    confidence: float = 1.0


TRIVIAL_WORDS = 6
SMALL_WORDS = 40
MEDIUM_WORDS = 160
SMALL_TASKS = 3
MEDIUM_TASKS = 10

_LEAD = {Side.BACKEND: "codex", Side.FRONTEND: "gemini", Side.BOTH: "claude", Side.NEITHER: "claude"}
_BACKEND_WORDS = frozenset(
    {
        "api",
        "apis",
        "backend",
        "server",
        "database",
        "sql",
        "schema",
        "service",
        "services",
        "endpoint",
        "endpoints",
        "grpc",
        "queue",
        "migration",
        "auth",
    }
)
_BACKEND_CHARACTERS = ("后端", "接口", "数据库", "服务端", "服务层")
_FRONTEND_WORDS = frozenset(
    {
        "ui",
        "frontend",
        "css",
        "page",
        "pages",
        "component",
        "components",
        "layout",
        "button",
        "form",
        "style",
        "react",
        "vue",
        "html",
    }
)
_FRONTEND_CHARACTERS = ("前端", "页面", "组件", "样式", "布局", "表单", "弹窗")
_COMPLEX_WORDS = frozenset(
    {
        "architecture",
        "distributed",
        "migrate",
        "migration",
        "rewrite",
        "refactor",
        "concurrency",
        "security",
        "protocol",
    }
)
_COMPLEX_CHARACTERS = ("架构", "分布式", "迁移", "重写", "重构", "并发", "安全")
_TASK = r"(?:task|job|work|change|feature|project|epic|story|requirement|undertaking|migration|refactoring)s?"
_CALLED_COMPLEX = re.compile(
    r"^\W*(?:complex|complicated)\b\s*[:—–-]"
    rf"|\b(?:complex|complicated)(?:[ ,-]+[a-z]+){{0,3}}?[ -]+{_TASK}\b"
    rf"|\b(?:it|this|that|{_TASK})(?:'s| is| are| will be| gets| seems| looks)(?: [a-z]+){{0,3}}? (?:complex|complicated)\b"
    r"|\bcomplexity(?: is|:)? *(?:high|complex)\b"
    r"|(?:复杂|複雜)的?[^。，\n]{0,6}(?:任务|需求|功能|项目|改动|工作|任務|功能|專案)"
    r"|(?:任务|需求|功能|项目|改动|工作|任務|專案|这个|這個|这|這)[^。，\n]{0,6}(?:复杂|複雜)"
    r"|複雑な(?:タスク|作業|変更|機能|課題)|(?:タスク|作業|変更|機能)は[^。、\n]{0,6}複雑"
)
"""Where a text calls its own task complex; not `complex numbers` or `the complex regex`."""
_NEGATION = re.compile(r"\b(?:not|never|hardly|less|nothing|no|isn't|aren't|without)\b|n't|[不没沒]|複雑では|複雑じゃ")
_CLAUSE_END = re.compile(r"[.!?;,。，；！？\n]")
_LETTERS_BEFORE, _LETTERS_AFTER = 16, 4
_WORD = re.compile(r"[A-Za-z0-9_]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CONFIDENCE = {Size.TRIVIAL: 0.95, Size.SMALL: 0.8, Size.MEDIUM: 0.75, Size.COMPLEX: 0.85}


def word_count(text: str) -> int:
    """How many words a text has; two Chinese, Japanese or Korean characters count as one word."""
    found = _WORD.findall(text)
    latin = sum(1 for word in found if word.isascii())
    return latin + (len(found) - latin + 1) // 2


def side_of(text: str) -> Side:
    """Which side of a system the text is about."""
    words = latin_words(text)
    backend = bool(words & _BACKEND_WORDS) or any(part in text for part in _BACKEND_CHARACTERS)
    frontend = bool(words & _FRONTEND_WORDS) or any(part in text for part in _FRONTEND_CHARACTERS)
    if backend and frontend:
        return Side.BOTH
    if backend:
        return Side.BACKEND
    return Side.FRONTEND if frontend else Side.NEITHER


def calls_itself_complex(text: str) -> bool:
    """Whether the text calls its task complex, without negation."""
    lower = text.lower().replace("’", "'")
    for found in _CALLED_COMPLEX.finditer(lower):
        start, end = found.span()
        before = _CLAUSE_END.split(lower[max(0, start - _LETTERS_BEFORE) : start])[-1]
        after = _CLAUSE_END.split(lower[end : end + _LETTERS_AFTER])[0]
        if not _NEGATION.search(f"{before}{found.group()}{after}"):
            return True
    return False


def size_of(text: str, task_count: int) -> Size:
    """The estimated size of a task, by its words and number of tasks; COMPLEX if the text says so."""
    if calls_itself_complex(text):
        return Size.COMPLEX
    words = word_count(text)
    has_complex_words = bool(latin_words(text) & _COMPLEX_WORDS) or any(part in text for part in _COMPLEX_CHARACTERS)
    if words <= TRIVIAL_WORDS and task_count <= 1 and not has_complex_words:
        return Size.TRIVIAL
    if words <= SMALL_WORDS and task_count <= SMALL_TASKS and not has_complex_words:
        return Size.SMALL
    if words <= MEDIUM_WORDS and task_count <= MEDIUM_TASKS and not (has_complex_words and words > SMALL_WORDS):
        return Size.MEDIUM
    return Size.COMPLEX


def collaboration_for(text: str, task_count: int) -> Collaboration:
    """The collaboration for an intake text: none, single, dual or triple, with a lead by side."""
    side = side_of(text)
    size = size_of(text, task_count)
    if size is Size.SMALL and side is Side.BOTH:
        size = Size.MEDIUM
    return route(size, side)


def route(size: Size, side: Side) -> Collaboration:
    """The table: size decides how many, side decides who leads."""
    lead = _LEAD[side]
    reason = f"{size} {side} task" if side is not Side.NEITHER else f"{size} task"
    confidence = _CONFIDENCE[size]
    others = tuple(model.value for model in Model if model != lead)
    if size is Size.TRIVIAL:
        return Collaboration("none", reason=reason, confidence=confidence)
    if size is Size.SMALL:
        return Collaboration("single", lead, reason=reason, confidence=confidence)
    if size is Size.MEDIUM:
        second = "claude" if lead != "claude" else "codex"
        return Collaboration("dual", lead, (second,), ("review",), reason, confidence)
    return Collaboration("triple", lead, others, ("analysis", "prototype", "review"), reason, confidence)
