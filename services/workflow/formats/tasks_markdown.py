"""Reads and writes tasks.md: `## T1: name` headings with bold fields, in Chinese or English."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pointsman.services.chassis.core.errors import Violation, invalid_fields
from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import Task, TaskSpec
from pointsman.services.workflow.formats.tasks_file import TasksFile


@dataclass(frozen=True, slots=True)
class FieldFormat:
    """One field of tasks.md: its English and Chinese name, and the format of its value."""

    field: str
    chinese: str
    format: str


FIELDS: tuple[FieldFormat, ...] = (
    FieldFormat("phase", "阶段", "text"),
    FieldFormat("file", "文件", "list"),
    FieldFormat("leverage", "复用", "text"),
    FieldFormat("design_ref", "设计参考", "text"),
    FieldFormat("requirement", "需求", "text"),
    FieldFormat("actions", "操作", "list"),
    FieldFormat("depends", "依赖", "ids"),
    FieldFormat("blocked_by", "阻塞依赖", "ids"),
    FieldFormat("quality_gate", "质量关卡", "flag"),
    FieldFormat("threshold", "阈值", "text"),
    FieldFormat("status", "状态", "status"),
    FieldFormat("priority", "优先级", "number"),
)

STATUS_NAMES: Mapping[str, TaskStatus] = {
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
_HEADING_WITHOUT_NAME = re.compile(r"##\s+(T\d+)\b.*")
_FIELD = re.compile(r"[-*]?\s*\*\*\s*([^*:：]+?)\s*[:：]?\s*\*\*\s*[:：]?\s*(.*)")
_ITEM = re.compile(r"(\s*)[-*]\s+(.*)")
_SEPARATOR = re.compile(r"\s*[,，、]\s*")
_ID_SEPARATOR = re.compile(r"[\s,，、]+")
_BREAK = re.compile(r"<(\\*)br>")
"""A line break; a literal `<br>` in a text is escaped with a backslash."""
_SPEC_FIELD = {"file": "files"}
_BY_NAME = {
    name: known for known in FIELDS for name in (known.field, known.chinese, _SPEC_FIELD.get(known.field, known.field))
}


@dataclass(slots=True)
class _Section:
    """One task, partly read."""

    line: int
    task_id: str
    name: str
    values: dict[str, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """The field names so far; a list may have two, `File` and `Files`."""
    open_list: str = ""
    is_indented: bool = True
    """Whether the items of the open list are indented, since its field is an item itself."""


@dataclass(slots=True)
class _Parser:
    """The file, partly read."""

    sections: list[_Section] = field(default_factory=list)
    current: _Section | None = None
    problems: list[Violation] = field(default_factory=list)

    def begin(self, section: _Section) -> None:
        """Starts the next task."""
        self.current = section
        self.sections.append(section)

    def add_problem(self, line: int, message: str) -> None:
        """Adds a problem with its line."""
        self.problems.append(Violation(f"markdown:{line}", f"line {line}: {message}"))


def has_tasks(markdown: str) -> bool:
    """Whether a heading begins a task: its id has a number, unlike `## Tasks: …`."""
    headings = (_HEADING.fullmatch(line.rstrip()) for line in markdown.splitlines() if line.startswith("## "))
    return any(found and re.search(r"\d", found[1]) for found in headings)


def read_file(markdown: str) -> TasksFile:
    """Reads a tasks.md as far as possible, with every problem by its line."""
    parser = _Parser()
    for number, line in enumerate(markdown.splitlines(), 1):
        _read_line(parser, number, line.rstrip())
    if not parser.sections:
        parser.add_problem(1, "there is no task; a task begins with '## T1: name'")
    return TasksFile(
        tuple(_planned(section) for section in parser.sections),
        tuple(f"markdown:{section.line}" for section in parser.sections),
        tuple(parser.problems),
    )


def read_tasks(markdown: str) -> tuple[tuple[PlannedTask, ...], tuple[str, ...]]:
    """The tasks of a tasks.md and the line of each for messages; refuses a file with problems."""
    found = read_file(markdown)
    if found.problems:
        raise invalid_fields(found.problems)
    return found.tasks, found.places


def _read_line(parser: _Parser, number: int, line: str) -> None:
    if line.startswith("#"):
        _read_heading(parser, number, line)
        return
    section = parser.current
    if section is None:
        return
    named = _FIELD.fullmatch(line.strip())
    if named:
        section.is_indented = not line.lstrip().startswith("**")
        _read_field(parser, section, number, (named[1], named[2]))
        return
    item = _ITEM.fullmatch(line)
    if item and section.open_list and (item[1] or not section.is_indented):
        section.values[section.open_list] += (_clean(item[2]),)
    elif line.strip():
        section.open_list = ""


def _read_heading(parser: _Parser, number: int, line: str) -> None:
    match, without_name = _HEADING.fullmatch(line), _HEADING_WITHOUT_NAME.fullmatch(line)
    if match:
        parser.begin(_Section(number, match[1], _clean(match[2])))
    elif without_name:
        parser.add_problem(number, "a task heading needs a colon and a name: '## T1: name'")
        parser.begin(_Section(number, without_name[1], without_name[1]))
    elif not line.startswith("###"):
        parser.current = None


def _read_field(parser: _Parser, section: _Section, number: int, named: tuple[str, str]) -> None:
    name, text = named
    found = _BY_NAME.get(name.strip().lower())
    section.open_list = ""
    if found is None:
        known = ", ".join(one.field for one in FIELDS)
        parser.add_problem(number, f"unknown field '{name[:50]}' in task '{section.task_id}'; known: {known}")
    elif name.strip().lower() in section.names or (found.field in section.values and found.format != "list"):
        parser.add_problem(number, f"field '{name}' stands twice in task '{section.task_id}'")
    else:
        section.names.add(name.strip().lower())
        try:
            value = _READERS[found.format](text.strip())
            section.values[found.field] = (
                section.values.get(found.field, ()) + value if found.format == "list" else value
            )
        except ValueError as error:
            parser.add_problem(number, f"task '{section.task_id}', field '{name}': {error}")
        else:
            section.open_list = found.field if found.format in ("list", "ids") else ""


def _clean(text: str) -> str:
    """A value without surrounding space and backticks, with its line breaks."""
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
    if word not in STATUS_NAMES:
        raise ValueError(f"'{text[:50]}' is no status; known: {', '.join(TaskStatus)}")
    return STATUS_NAMES[word]


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
    """Writes tasks as tasks.md; reading it gives the same plan."""
    return "".join(_section(task, chinese=chinese) for task in tasks)


def _section(task: Task, *, chinese: bool) -> str:
    lines = [f"## {task.task_id}: {_inline(task.spec.name)}", ""]
    for known in FIELDS:
        name = known.chinese if chinese else known.field
        value = (
            task.status.value
            if known.field == "status"
            else getattr(task.spec, _SPEC_FIELD.get(known.field, known.field))
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
