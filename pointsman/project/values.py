"""Readers of values: each checks the type and the bounds of one value, or adds what is wrong to the problems."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from pointsman._shared.hours import Hours, InvalidHours, read_hours
from pointsman.project.command_line import Command, InvalidCommand, split_command
from pointsman.project.model import CrewMember
from pointsman.project.problems import Problems

Reader = Callable[[Problems, str, Any], Any]
"""Reads the value of a key; returns None for an invalid one, after adding its problem."""

MAX_TEXT = 4096
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRANCH = re.compile(r"(?!refs/)[A-Za-z0-9_][A-Za-z0-9_./-]*")
_SERVICE = re.compile(r"[a-z][a-z0-9_-]*")
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a table"}
KNOWN_SERVICES = ("postgres",)
TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
MAX_SERVICES = 16
PORT_PLACEHOLDER = "{port}"
"""Where a service's own port goes: two of a fixed port would meet."""


def kind_of(value: object) -> str:
    """What a value is, in the words of TOML."""
    return _KINDS.get(type(value), "a date or time")


def refuse_type(problems: Problems, key: str, value: object, wanted: str) -> None:
    """Adds the problem that a value has another type than its key."""
    problems.add(key, f"takes {wanted}, not {kind_of(value)}", value)


def closest(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """`did you mean 'x'?` for a misspelt name, else the names that are known."""
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"


def text(problems: Problems, key: str, value: Any) -> str | None:
    """A text that is not empty."""
    if not isinstance(value, str):
        refuse_type(problems, key, value, "text")
    elif not value.strip() or len(value) > MAX_TEXT or "\0" in value:
        problems.add(key, f"takes text of 1 to {MAX_TEXT} characters without NUL", value)
    else:
        return value
    return None


def branch(problems: Problems, key: str, value: Any) -> str | None:
    """The name of a branch."""
    given = text(problems, key, value)
    if given is not None and not _BRANCH.fullmatch(given):
        problems.add(key, "takes the name of a branch, without `refs/heads/`", given)
        return None
    return given


def list_of(read: Reader, wanted: str) -> Reader:
    """A reader of a list whose items are read by another reader."""

    def read_list(problems: Problems, key: str, value: Any) -> tuple[Any, ...] | None:
        if not isinstance(value, list):
            refuse_type(problems, key, value, f"a list of {wanted}")
            return None
        read_items = [read(problems, f"{key}[{number}]", item) for number, item in enumerate(value)]
        return tuple(item for item in read_items if item is not None)

    return read_list


def tool_kind(problems: Problems, key: str, value: Any) -> str | None:
    """A kind of tool call, as the Agent Client Protocol names them."""
    if value in TOOL_KINDS:
        return str(value)
    problems.add(key, f"is no kind of tool call; {closest(str(value), TOOL_KINDS)}")
    return None


def web_address(problems: Problems, key: str, value: Any) -> str | None:
    """An address of the web."""
    given = text(problems, key, value)
    if given is not None and not given.startswith(("http://", "https://")):
        problems.add(key, "takes an address that begins with http:// or https://", given)
        return None
    return given


def hours(problems: Problems, key: str, value: Any) -> Hours | None:
    """A span of the day."""
    given = text(problems, key, value)
    try:
        return None if given is None else read_hours(given)
    except InvalidHours as error:
        problems.add(key, str(error), given)
    return None


def command(problems: Problems, key: str, value: Any) -> Command | None:
    """A command line without a shell's syntax."""
    given = text(problems, key, value)
    if given is None:
        return None
    try:
        return split_command(given)
    except InvalidCommand as error:
        problems.add(key, str(error), given)
    return None


def path_in_tree(problems: Problems, key: str, value: Any) -> str | None:
    """A path or glob below the top of the repository."""
    given = text(problems, key, value)
    if given is None:
        return None
    parts = PurePosixPath(given).parts
    if given.startswith(("/", "~")) or ".." in parts or ".git" in parts:
        problems.add(key, "takes a path below the top of the repository, without `..` and not in `.git`", given)
        return None
    return given


def path_on_machine(problems: Problems, key: str, value: Any) -> str | None:
    """An absolute path, or one below the home folder."""
    given = text(problems, key, value)
    if given is None:
        return None
    parts = PurePosixPath(given).parts
    if not given.startswith(("/", "~/")) or ".." in parts or given.strip("/~") == "":
        problems.add(key, "takes a folder by its whole path, `/…` or `~/…`, without `..`", given)
        return None
    return given


def flag(problems: Problems, key: str, value: Any) -> bool | None:
    """True or false."""
    if isinstance(value, bool):
        return value
    refuse_type(problems, key, value, "true or false")
    return None


def integer(least: int, most: int) -> Reader:
    """A reader of a whole number within bounds."""

    def read_integer(problems: Problems, key: str, value: Any) -> int | None:
        if type(value) is not int:
            refuse_type(problems, key, value, f"a whole number from {least} to {most}")
        elif not least <= value <= most:
            problems.add(key, f"takes a whole number from {least} to {most}, not {value}")
        else:
            return value
        return None

    return read_integer


def amount(problems: Problems, key: str, value: Any) -> float | None:
    """A positive number."""
    if type(value) not in (int, float):
        refuse_type(problems, key, value, "a number")
    elif not 0 < value < 1e9:
        problems.add(key, "takes a number above 0")
    else:
        return float(value)
    return None


def variables(problems: Problems, key: str, value: Any) -> Mapping[str, str] | None:
    """A table of environment variables."""
    if not isinstance(value, dict):
        refuse_type(problems, key, value, 'a table such as { TZ = "UTC" }')
        return None
    found = {}
    for name, content in value.items():
        if not _VARIABLE.fullmatch(name) or name.upper().startswith("POINTSMAN_"):
            problems.add(f"{key}.{name}", "is no name of a variable, or one that Pointsman sets itself")
        elif not isinstance(content, str) or "\0" in content:
            problems.add(f"{key}.{name}", f'takes text; write {name} = "{str(content).lower()}"')
        else:
            found[name] = content
    return MappingProxyType(found)


def services(problems: Problems, key: str, value: Any) -> Mapping[str, Command | None] | None:
    """A table of services: true for a known one, else the command that starts it."""
    if not isinstance(value, dict):
        refuse_type(problems, key, value, "a table such as { postgres = true }")
        return None
    if len(value) > MAX_SERVICES:
        problems.add(key, f"names {len(value)} services; {MAX_SERVICES} are the most")
    found: dict[str, Command | None] = {}
    for name, content in value.items():
        where = f"{key}.{name}"
        if not _SERVICE.fullmatch(name):
            problems.add(where, "is no name of a service: small letters, digits, `-` and `_`")
        elif isinstance(content, bool):
            found |= _known_service(problems, where, name) if content else {}
        elif (started_by := _service_command(problems, where, content)) is not None:
            found[name] = started_by
    return MappingProxyType(found)


def _known_service(problems: Problems, key: str, name: str) -> dict[str, None]:
    if name in KNOWN_SERVICES:
        return {name: None}
    known = ", ".join(KNOWN_SERVICES)
    problems.add(key, f'is not known by its name ({known}); give its command: {name} = "… --port {PORT_PLACEHOLDER}"')
    return {}


def _service_command(problems: Problems, key: str, value: Any) -> Command | None:
    """The command of a service, which listens on the port that it is given."""
    started_by = command(problems, key, value)
    if started_by is not None and not any(PORT_PLACEHOLDER in word for word in started_by.arguments):
        message = f"names no {PORT_PLACEHOLDER}; write where its port goes, such as --port {PORT_PLACEHOLDER}"
        problems.add(key, message, value)
        return None
    return started_by


_MEMBER_KEYS: Mapping[str, Reader] = {"agent": text, "parallel": integer(1, 64), "best_of": integer(1, 16)}


def member(problems: Problems, key: str, value: Any) -> CrewMember | None:
    """Who plays a role: the agent's name, or a table with it."""
    if isinstance(value, str):
        name = text(problems, key, value)
        return CrewMember(name) if name else None
    if not isinstance(value, dict):
        refuse_type(problems, key, value, "an agent's name, or a table such as { agent = …, parallel = 3 }")
        return None
    read: dict[str, Any] = {}
    for name, content in value.items():
        if name not in _MEMBER_KEYS:
            problems.add(f"{key}.{name}", f"is no key of a crew member; {closest(name, _MEMBER_KEYS)}")
        elif (found := _MEMBER_KEYS[name](problems, f"{key}.{name}", content)) is not None:
            read[name] = found
    if "agent" not in value:
        problems.add(key, "names no agent; add agent = …")
    return CrewMember(**read) if "agent" in read else None
