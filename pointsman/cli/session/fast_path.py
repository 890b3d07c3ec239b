"""Trivial commands that run on the client without a run: a closed list, no shell, arguments as typed."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pointsman.cli.exit_codes import EXIT_FAILED

ACCEPTED_COMMANDS = "pwd [-L|-P], date (options that print), whoami, echo, ping [-c COUNT] [HOST]"
DEFAULT_PINGS = 4
MAX_PINGS = 10
PING_SECONDS = 30.0
LOOPBACK = "127.0.0.1"
_DATE_ARGUMENT = re.compile(
    r"-u|--utc|--universal|-R|--rfc-email|-I(?:date|hours|minutes|seconds|ns)?|--iso-8601(?:=[a-z]+)?|--rfc-3339=[a-z]+|\+.*",
    re.DOTALL,
)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]{0,252})")
_PING_FLAGS = frozenset({"-4", "-6", "-n", "-q"})


def argv_of(message: str) -> list[str] | None:
    """The trivial command of a message as an argument list; None if the command or an option is not on the list."""
    try:
        words = shlex.split(message)
    except ValueError:
        return None
    if not words:
        return None
    name = words[0].lower()
    build = _COMMANDS.get(name)
    arguments = build(words[1:]) if build is not None else None
    return None if arguments is None else [name, *arguments]


@dataclass(frozen=True, slots=True)
class Executed:
    """The exit code of a command, and its output where that was captured."""

    exit_code: int
    output: str = ""


def execute(argv: Sequence[str], *, capture: bool = False) -> Executed:
    """Runs the command; stops a ping that takes too long."""
    if shutil.which(argv[0]) is None:
        print(f"pointsman: cannot run '{argv[0]}': it is not installed here", file=sys.stderr)
        return Executed(EXIT_FAILED)
    seconds = PING_SECONDS if argv[0] == "ping" else None
    out = subprocess.PIPE if capture else None
    try:
        done = subprocess.run(argv, check=False, timeout=seconds, stdout=out, text=True, errors="replace")  # noqa: S603 - from the closed list
    except subprocess.TimeoutExpired:
        print(f"pointsman: '{shlex.join(argv)}' did not end within {PING_SECONDS:.0f} seconds", file=sys.stderr)
        return Executed(EXIT_FAILED)
    return Executed(done.returncode, done.stdout or "")


def _as_typed(arguments: list[str]) -> list[str] | None:
    return arguments


def _no_arguments(arguments: list[str]) -> list[str] | None:
    return None if arguments else []


def _pwd(arguments: list[str]) -> list[str] | None:
    return arguments if all(word in ("-L", "-P") for word in arguments) else None


def _date(arguments: list[str]) -> list[str] | None:
    """Accepts only options that print the time, none that set the clock or read a file."""
    return arguments if all(_DATE_ARGUMENT.fullmatch(word) for word in arguments) else None


def _ping(arguments: list[str]) -> list[str] | None:
    """The named host, else loopback; always with a count, of at most MAX_PINGS."""
    count, host, flags = DEFAULT_PINGS, "", []
    rest = iter(arguments)
    for word in rest:
        if word == "-c":
            given = next(rest, "")
            if not (given.isascii() and given.isdigit() and int(given[:9]) > 0):
                return None
            count = min(int(given[:9]), MAX_PINGS)
        elif word in _PING_FLAGS:
            flags.append(word)
        elif not host and _HOST.fullmatch(word):
            host = word
        else:
            return None
    return [*flags, "-c", str(count), host or LOOPBACK]


_COMMANDS: dict[str, Callable[[list[str]], list[str] | None]] = {
    "pwd": _pwd,
    "date": _date,
    "whoami": _no_arguments,
    "echo": _as_typed,
    "ping": _ping,
}
