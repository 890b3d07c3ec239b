"""Reads spec-kit's tasks.md: `- [ ] T012 [P] [US1] … in src/x.py` below headings that are phases.

Tasks without `[P]` go one after the other; those with it go side by side after the last one without. A phase begins
when the phase before has ended. `(depends on T003)` is taken as it says, besides.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pointsman.services.workflow.domain.commands import PlannedTask
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.tasks_file import MAX_NAME, Problems, TasksFile, split_text, unique

TASK = re.compile(r"^\s*[-*+]\s+\[([ xX])\]\s+(?:\*\*)?(T\d+[A-Za-z]?)\b(?:\*\*)?[:.]?\s*(.*)$")
BOX = re.compile(r"^\s*[-*+]\s+\[[ xX]\]\s+(.*)$")
HEADING = re.compile(r"^#{1,6}\s")
FENCE = re.compile(r"^\s*(```|~~~)")
COMMENT, COMMENT_END = "<!--", "-->"
MARK = re.compile(r"^\[([^\]\s]{1,20})\]\s*")
STORY = re.compile(r"US\d+", re.IGNORECASE)
DEPENDS = re.compile(r"depends? on ((?:T\d+[A-Za-z]?(?:\s*(?:,|and|&)\s*)?)+)", re.IGNORECASE)
TASK_ID = re.compile(r"T\d+[A-Za-z]?")
PATH = re.compile(r"(?<![\w/:.@-])(?:[\w.@-]+/[\w.@()\[\]{}*/-]*|[\w-]+\.[a-z][a-z0-9]{0,5}\b(?!\())")
CODE = re.compile(r"`([^`\s]+)`")
FOLDERS = frozenset(
    {
        "src",
        "test",
        "tests",
        "lib",
        "app",
        "apps",
        "backend",
        "frontend",
        "docs",
        "scripts",
        "packages",
        "specs",
        "config",
    }
)
"""Folders that are paths even where no file is named in them."""
FILE_NAME = re.compile(r"[^/]*[A-Za-z][^/]*\.[A-Za-z0-9]{1,8}")


@dataclass(slots=True)
class _Order:
    """Which tasks the next one comes after."""

    gate: tuple[str, ...] = ()
    side_by_side: list[str] = field(default_factory=list)

    def open_ends(self) -> tuple[str, ...]:
        """The tasks that nothing comes after yet."""
        return tuple(self.side_by_side) or self.gate

    def place(self, task_id: str, *, parallel: bool) -> tuple[str, ...]:
        """What a task depends on; the next one may depend on it."""
        if parallel:
            self.side_by_side.append(task_id)
            return self.gate
        before = self.open_ends()
        self.gate, self.side_by_side = (task_id,), []
        return before

    def begin_phase(self) -> None:
        """The next phase comes after all of this one."""
        self.gate, self.side_by_side = self.open_ends(), []


@dataclass(slots=True)
class _Task:
    """One task, partly read."""

    line: int
    done: bool
    task_id: str
    text: str
    phase: str
    depends: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Reader:
    """The file, partly read."""

    problems: Problems = field(default_factory=Problems)
    tasks: list[_Task] = field(default_factory=list)
    order: _Order = field(default_factory=_Order)
    phase: str = ""
    loose: list[tuple[int, str]] = field(default_factory=list)
    """Boxes without an id, with their phase."""
    takes_notes: bool = False

    def read(self, number: int, line: str) -> None:
        """One line outside of code blocks."""
        heading, task, box = HEADING.match(line), TASK.match(line), BOX.match(line)
        if heading:
            self._begin(line.strip("#").strip())
        elif task:
            self._add(number, task)
        elif box:
            self.loose.append((number, self.phase))
            self.takes_notes = False
        elif self.takes_notes and line[:1].isspace() and line.strip():
            self.tasks[-1].notes.append(line.strip())
        elif line.strip():
            self.takes_notes = False

    def _begin(self, title: str) -> None:
        self.takes_notes = False
        if any(task.phase == self.phase for task in self.tasks):
            self.order.begin_phase()
        self.phase = re.sub(r"[*_`]", "", title)[:100].strip()

    def _add(self, number: int, found: re.Match[str]) -> None:
        box, task_id, text = found[1], found[2], found[3].strip()
        marks: list[str] = []
        while mark := MARK.match(text):
            marks.append(mark[1])
            text = text[mark.end() :]
        if not text:
            self.problems.add(number, f"task {task_id} has no description")
        depends = self.order.place(task_id, parallel="P" in (mark.upper() for mark in marks))
        named = [one for part in DEPENDS.findall(text) for one in TASK_ID.findall(part)]
        task = _Task(number, box in "xX", task_id, text or task_id, self.phase, (*depends, *named), tuple(marks))
        self.tasks.append(task)
        self.takes_notes = True


def is_spec_kit(text: str) -> bool:
    """Whether the file has tasks as spec-kit writes them."""
    return any(TASK.match(line) for line in text.splitlines())


def read_spec_kit(text: str) -> TasksFile:
    """Read as far as possible, with every problem by its line."""
    reader = _Reader()
    for number, line in _outside_code(text):
        reader.read(number, line)
    phases = {task.phase for task in reader.tasks}
    for number, phase in reader.loose:
        if phase in phases:
            reader.problems.add(number, "this task has no id; write one behind the box, for example '- [ ] T012 …'")
    return TasksFile(
        tuple(_planned(task) for task in reader.tasks),
        tuple(f"markdown:{task.line}" for task in reader.tasks),
        tuple(reader.problems.found),
    )


def write_spec_kit(text: str, statuses: Mapping[str, TaskStatus]) -> str:
    """The file with the boxes of completed and skipped tasks ticked, and those of all others open; nothing else changes."""
    lines = text.splitlines(keepends=True)
    for number, line in _outside_code(text):
        found = TASK.match(line)
        if found and found[2] in statuses:
            done = statuses[found[2]] in (TaskStatus.COMPLETED, TaskStatus.SKIPPED)
            at = found.start(1)
            mark = found[1] if done == (found[1] in "xX") else "x" if done else " "
            lines[number - 1] = lines[number - 1][:at] + mark + lines[number - 1][at + 1 :]
    return "".join(lines)


def _outside_code(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of fenced code and comments, with their numbers."""
    in_code = in_comment = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line) and not in_comment:
            in_code = not in_code
        elif not in_code:
            opens = in_comment or COMMENT in line
            in_comment = opens and COMMENT_END not in line.rpartition(COMMENT)[2]
            if not opens:
                yield number, line


def _planned(task: _Task) -> PlannedTask:
    stories = [mark for mark in task.marks if STORY.fullmatch(mark)]
    other = [mark for mark in task.marks if mark not in stories and mark.upper() != "P"]
    parts = [f"User story {', '.join(stories)}"] if stories else []
    parts += [f"Marks: {', '.join(other)}"] if other else []
    parts += [task.text] if len(task.text) > MAX_NAME else []
    requirement, rest = split_text("\n".join((*parts, *task.notes)))
    spec = TaskSpec(
        task.task_id,
        task.text[:MAX_NAME],
        task.phase,
        files=_files(task.text),
        actions=(task.text[:MAX_NAME], *rest),
        depends=unique(one for one in task.depends if one != task.task_id),
        requirement=requirement,
    )
    return PlannedTask(spec, TaskStatus.COMPLETED if task.done else TaskStatus.PENDING)


def _files(text: str) -> tuple[str, ...]:
    """The relative paths that a description names."""
    named = (*CODE.findall(text), *PATH.findall(CODE.sub(" ", text)))
    return unique(path for path in (one.rstrip(".,;:)") for one in named) if _is_path(path))


def _is_path(text: str) -> bool:
    first, _, rest = text.partition("/")
    if text.startswith("/") or "://" in text or ".." in text.split("/"):
        return False
    last = text.rstrip("/").rpartition("/")[2]
    return bool(FILE_NAME.fullmatch(last)) or (bool(rest or text.endswith("/")) and first in FOLDERS)
