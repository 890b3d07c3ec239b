"""Reads `pointsman.toml` and `.worktreeinclude`: typed values, or every problem at once."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from pointsman.project import values
from pointsman.project.keys import SECTIONS
from pointsman.project.model import (
    Budget,
    Crew,
    DeliverSection,
    NotifySection,
    ProjectFile,
    ProofSection,
    WorkspaceSection,
)
from pointsman.project.problems import InvalidProjectFile, Problem, Problems

FILE_NAME = "pointsman.toml"
INCLUDE_FILE_NAME = ".worktreeinclude"
MAX_BYTES = 256 * 1024
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_project_file(content: bytes) -> ProjectFile:
    """Reads a project file; raises InvalidProjectFile with every problem."""
    text = _decode(content, FILE_NAME)
    problems = Problems(text)
    document = _parse(text)
    found: dict[str, dict[str, Any]] = {}
    given: set[str] = set()
    for name, table in document.items():
        if not isinstance(table, dict):
            problems.add(name, _misplaced(name))
        elif name in SECTIONS:
            found[name] = read_section(problems, name, table)
            given |= {f"{name}.{key}" for key in table}
        else:
            problems.add(name, f"there is no section [{name}]; {values.closest(name, tuple(SECTIONS))}")
    if problems.found:
        raise InvalidProjectFile(FILE_NAME, problems.found)
    return ProjectFile(
        WorkspaceSection(**found.get("workspace", {})),
        ProofSection(**found.get("proof", {})),
        Crew(**found.get("crew", {})),
        Budget(**found.get("budget", {})),
        DeliverSection(**found.get("deliver", {})),
        NotifySection(**found.get("notify", {})),
        frozenset(given),
    )


def read_include_file(content: bytes) -> tuple[str, ...]:
    """Reads `.worktreeinclude`: one path or glob a line, as in .gitignore; blank lines and comments are left out."""
    text = _decode(content, INCLUDE_FILE_NAME)
    problems = Problems(text)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        before = len(problems.found)
        read = values.path_in_tree(problems, "", pattern.removeprefix("/"))
        if len(problems.found) > before:
            problems.found[-1] = Problem("", problems.found[-1].message, number)
        elif read:
            found.append(read)
    if problems.found:
        raise InvalidProjectFile(INCLUDE_FILE_NAME, problems.found)
    return tuple(found)


def _decode(content: bytes, file_name: str) -> str:
    if len(content) > MAX_BYTES:
        raise InvalidProjectFile(file_name, [Problem("", f"is larger than {MAX_BYTES} bytes")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidProjectFile(file_name, [Problem("", "is not UTF-8 text; save it as UTF-8", line)]) from None


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message = str(error)
        place = _PLACE.search(message)
        line = int(place[1] or text.count("\n") + 1) if place else 0
        problem = Problem("", f"is no TOML: {_PLACE.sub('', message)}", line)
        raise InvalidProjectFile(FILE_NAME, [problem]) from None


def _misplaced(name: str) -> str:
    """What is wrong with a key outside of every section."""
    homes = [section for section, keys in SECTIONS.items() if name in keys]
    if homes:
        return f"stands in no section; put it below [{homes[0]}]"
    if name in SECTIONS:
        return f"is a section; write [{name}] on a line of its own"
    return f"stands in no section; sections are {', '.join(SECTIONS)}"


def _check_receivers(problems: Problems, notify: Mapping[str, Any]) -> None:
    """Adds the problems of `[notify]` that no key has by itself."""
    receivers = [name for name in ("webhook", "slack", "ntfy") if name in notify]
    if len(receivers) > 1:
        problems.add(f"notify.{receivers[1]}", f"stands beside {receivers[0]}; name one receiver")
    if ("escalate" in notify) != ("escalate_minutes" in notify):
        missing = "escalate" if "escalate_minutes" in notify else "escalate_minutes"
        problems.add("notify", f"lacks {missing}: escalate and escalate_minutes go together")


def read_section(problems: Problems, section: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The values of one section; adds what is wrong to the problems."""
    keys, found = SECTIONS[section], {}
    for name, value in table.items():
        where = f"{section}.{name}"
        if name not in keys:
            elsewhere = next((other for other, theirs in SECTIONS.items() if name in theirs), "")
            hint = f"it belongs below [{elsewhere}]" if elsewhere else values.closest(name, keys)
            problems.add(where, f"there is no such key; {hint}")
            continue
        read = keys[name].read(problems, where, value)
        if read is not None:
            found[name] = read
    if section == "notify":
        _check_receivers(problems, table)
    return found
