"""tasks.md to a plan and back: `## T1: name` headings with bold fields, in Chinese or English."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pointsman.services.chassis.core.errors import Violation, invalid_fields
from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import Task, TaskSpec


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of one field in tasks.md, and how its value is read."""

    field: str
    chinese: str
    reads: str


VOCABULARY: tuple[Vocabulary, ...] = (
    Vocabulary("phase", "阶段", "text"),
    Vocabulary("file", "文件", "list"),
    Vocabulary("leverage", "复用", "text"),
    Vocabulary("design_ref", "设计参考", "text"),
    Vocabulary("requirement", "需求", "text"),
    Vocabulary("actions", "操作", "list"),
    Vocabulary("depends", "依赖", "ids"),
    Vocabulary("blocked_by", "阻塞依赖", "ids"),
    Vocabulary("quality_gate", "质量关卡", "flag"),
    Vocabulary("threshold", "阈值", "text"),
    Vocabulary("status", "状态", "status"),
    Vocabulary("priority", "优先级", "number"),
)

STATUS_WORDS: Mapping[str, TaskStatus] = {
    **{status.value: status for status in TaskStatus},
    "in progress": TaskStatus.IN_PROGRESS,
    "待执行": TaskStatus.PENDING,
    "被阻塞": TaskStatus.BLOCKED,
    "阻塞": TaskStatus.BLOCKED,
    "执行中": TaskStatus.IN_PROGRESS,
    "进行中": TaskStatus.IN_PROGRESS,
    "已完成": TaskStatus.COMPLETED,
    "完成": TaskStatus.COMPLETED,
    "已跳过": TaskStatus.SKIPPED,
    "跳过": TaskStatus.SKIPPED,
    "失败": TaskStatus.FAILED,
}
YES = frozenset({"true", "yes", "1", "是", "✓", "✅"})
NO = frozenset({"false", "no", "0", "否", ""})
NOTHING = frozenset({"-", "none", "n/a", "无", ""})

_HEADING = re.compile(r"##\s+([A-Za-z0-9][A-Za-z0-9_.-]*)\s*[:：]\s*(.*)")
_HALF_HEADING = re.compile(r"##\s+(T\d+)\b.*")
_FIELD = re.compile(r"[-*]?\s*\*\*\s*([^*:：]+?)\s*[:：]?\s*\*\*\s*[:：]?\s*(.*)")
_ITEM = re.compile(r"(\s*)[-*]\s+(.*)")
_SEPARATOR = re.compile(r"\s*[,，、]\s*")
_ID_SEPARATOR = re.compile(r"[\s,，、]+")
_BREAK = re.compile(r"<(\\*)br>")
"""A line break; one that stands in the text itself is written with a backslash more."""
_SPEC_FIELD = {"file": "files"}
_BY_NAME = {
    name: word for word in VOCABULARY for name in (word.field, word.chinese, _SPEC_FIELD.get(word.field, word.field))
}


@dataclass(slots=True)
class _Section:
    """One task while it is read."""

    line: int
    task_id: str
    name: str
    values: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """The names of the fields so far: one list may stand under two, as `File` and `Files`."""
    open_list: str = ""
    is_indented: bool = True
    """Whether the items of the open list stand deeper than its field, which is an item itself."""


@dataclass(slots=True)
class _Reading:
    """The file while it is read."""

    sections: list[_Section] = field(default_factory=list)
    current: _Section | None = None
    problems: list[Violation] = field(default_factory=list)

    def begin(self, section: _Section) -> None:
        """Go on with another task."""
        self.current = section
        self.sections.append(section)

    def complain(self, line: int, message: str) -> None:
        """Remember a problem with its line."""
        self.problems.append(Violation(f"markdown:{line}", f"line {line}: {message}"))


@dataclass(frozen=True, slots=True)
class TasksFile:
    """What a tasks.md holds: its tasks, the place of each for messages, and what in it could not be read."""

    tasks: tuple[PlannedTask, ...]
    places: tuple[str, ...]
    problems: tuple[Violation, ...]


def read_file(markdown: str) -> TasksFile:
    """A tasks.md as far as it can be read; every problem is named with its line."""
    reading = _Reading()
    for number, line in enumerate(markdown.splitlines(), 1):
        _read_line(reading, number, line.rstrip())
    if not reading.sections:
        reading.complain(1, "there is no task; a task begins with '## T1: name'")
    return TasksFile(
        tuple(_planned(section) for section in reading.sections),
        tuple(f"markdown:{section.line}" for section in reading.sections),
        tuple(reading.problems),
    )


def read_tasks(markdown: str) -> tuple[tuple[PlannedTask, ...], tuple[str, ...]]:
    """The plan in a tasks.md that can be read as a whole, and the place of each task for messages."""
    found = read_file(markdown)
    if found.problems:
        raise invalid_fields(found.problems)
    return found.tasks, found.places


def _read_line(reading: _Reading, number: int, line: str) -> None:
    if line.startswith("#"):
        _read_heading(reading, number, line)
        return
    section = reading.current
    if section is None:
        return
    named = _FIELD.fullmatch(line.strip())
    if named:
        section.is_indented = not line.lstrip().startswith("**")
        _read_field(reading, section, number, (named[1], named[2]))
        return
    item = _ITEM.fullmatch(line)
    if item and section.open_list and (item[1] or not section.is_indented):
        section.values[section.open_list] += (_clean(item[2]),)
    elif line.strip():
        section.open_list = ""


def _read_heading(reading: _Reading, number: int, line: str) -> None:
    match, half = _HEADING.fullmatch(line), _HALF_HEADING.fullmatch(line)
    if match:
        reading.begin(_Section(number, match[1], _clean(match[2])))
    elif half:
        reading.complain(number, "a task heading needs a colon and a name: '## T1: name'")
        reading.begin(_Section(number, half[1], half[1]))
    elif not line.startswith("###"):
        reading.current = None


def _read_field(reading: _Reading, section: _Section, number: int, named: tuple[str, str]) -> None:
    name, text = named
    word = _BY_NAME.get(name.strip().lower())
    section.open_list = ""
    if word is None:
        known = ", ".join(one.field for one in VOCABULARY)
        reading.complain(number, f"unknown field '{name[:50]}' in task '{section.task_id}'; known: {known}")
    elif name.strip().lower() in section.names or (word.field in section.values and word.reads != "list"):
        reading.complain(number, f"field '{name}' stands twice in task '{section.task_id}'")
    else:
        section.names.add(name.strip().lower())
        try:
            value = _READERS[word.reads](text.strip())
            section.values[word.field] = section.values.get(word.field, ()) + value if word.reads == "list" else value
        except ValueError as error:
            reading.complain(number, f"task '{section.task_id}', field '{name}': {error}")
        else:
            section.open_list = word.field if word.reads in ("list", "ids") else ""


def _clean(text: str) -> str:
    """One value: trimmed, out of its backticks, with its line breaks back."""
    stripped = text.strip()
    if len(stripped) > 1 and stripped.startswith("`") and stripped.endswith("`"):
        stripped = stripped[1:-1]
    return _BREAK.sub(lambda found: f"<{found[1][1:]}br>" if found[1] else "\n", stripped)


def _read_list(text: str) -> tuple[str, ...]:
    if text.lower() in NOTHING:
        return ()
    return tuple(_clean(item) for item in _SEPARATOR.split(text) if item)


def _read_ids(text: str) -> tuple[str, ...]:
    if text.lower() in NOTHING:
        return ()
    return tuple(_clean(item) for item in _ID_SEPARATOR.split(text) if item)


def _read_flag(text: str) -> bool:
    word = _clean(text).lower()
    if word in YES:
        return True
    if word in NO:
        return False
    raise ValueError(f"'{text[:50]}' is neither yes nor no")


def _read_status(text: str) -> TaskStatus:
    word = _clean(text).lower()
    if word not in STATUS_WORDS:
        raise ValueError(f"'{text[:50]}' is no status; known: {', '.join(TaskStatus)}")
    return STATUS_WORDS[word]


def _read_number(text: str) -> int:
    word = _clean(text)
    if not word.isascii() or not word.isdigit() or int(word) > 1000:
        raise ValueError(f"'{text[:50]}' is not a number from 0 to 1000")
    return int(word)


_READERS = {
    "text": _clean, "list": _read_list, "ids": _read_ids, "flag": _read_flag, "status": _read_status,
    "number": _read_number,
}  # fmt: skip


def _planned(section: _Section) -> PlannedTask:
    values = dict(section.values)
    status = values.pop("status", None)
    fields = {_SPEC_FIELD.get(name, name): value for name, value in values.items()}
    return PlannedTask(TaskSpec(section.task_id, section.name, **fields), status)


def write_tasks(tasks: Iterable[Task], *, chinese: bool = False) -> str:
    """The tasks as tasks.md; read again, they are the same plan."""
    return "".join(_section(task, chinese=chinese) for task in tasks)


def _section(task: Task, *, chinese: bool) -> str:
    lines = [f"## {task.task_id}: {_inline(task.spec.name)}", ""]
    for word in VOCABULARY:
        name = word.chinese if chinese else word.field
        value = (
            task.status.value if word.field == "status" else getattr(task.spec, _SPEC_FIELD.get(word.field, word.field))
        )
        lines.extend(_field_lines(name, value))
    return "\n".join(lines) + "\n\n"


def _field_lines(name: str, value: Any) -> Iterator[str]:
    if not value:
        return
    if isinstance(value, tuple) and (len(value) > 1 or _needs_own_line(value[0])):
        yield f"- **{name}**:"
        for item in value:
            yield f"  - {_inline(item)}"
    elif isinstance(value, tuple):
        yield f"- **{name}**: {_inline(value[0])}"
    elif isinstance(value, bool):
        yield f"- **{name}**: true"
    else:
        yield f"- **{name}**: {_inline(str(value))}"


def _needs_own_line(item: str) -> bool:
    return bool(_SEPARATOR.search(item)) or item.lower() in NOTHING


def _inline(text: str) -> str:
    joined = "<br>".join(_BREAK.sub(r"<\\\1br>", line) for line in text.splitlines())
    return f"`{joined}`" if joined.startswith("`") and joined.endswith("`") else joined
