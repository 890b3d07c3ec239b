"""Runs the commands that check constraints, on this machine and without a shell."""

import re
import shlex
import subprocess
import time
from dataclasses import dataclass

from pointsman.services.workflow.domain.constraints import BUILTIN_VERIFIERS

OPERATORS = frozenset("();<>|&")
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_EXPANDED = re.compile(r"\$[\w({]|`")
EXCERPT_CHARACTERS = 1500


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check; `passed` is None where the command could not run."""

    passed: bool | None
    details: str
    seconds: float = 0.0


def command_of(verify_cmd: str) -> str:
    """The command of a built-in verifier, or the command itself."""
    return BUILTIN_VERIFIERS.get(verify_cmd.strip(), verify_cmd.strip())


def check(verify_cmd: str, timeout_seconds: float) -> CheckResult:
    """Runs a constraint's command; exit code 0 passes."""
    command = command_of(verify_cmd)
    try:
        words = shlex.split(command)
    except ValueError as error:
        return CheckResult(None, f"not a command: {error}")
    if not words:
        return CheckResult(None, "no command")
    if needs_shell(command):
        return CheckResult(None, "needs a shell; put it into a script and name the script")
    return _run(command, words, timeout_seconds)


def needs_shell(command: str) -> bool:
    """Whether a command needs a shell: without one, its first part alone could run and pass."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    return _EXPANDED.search(_SINGLE_QUOTED.sub("", command)) is not None or any(
        OPERATORS.issuperset(w) for w in reader if w
    )


def _run(command: str, words: list[str], timeout_seconds: float) -> CheckResult:
    begun = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 - the user asked for it and saw the command
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return CheckResult(False, f"{command}: no end after {timeout_seconds:g} s", timeout_seconds)
    except OSError as error:
        return CheckResult(False, f"{command}: {error.strerror}", time.monotonic() - begun)
    output = done.stdout.decode(errors="replace").replace("\0", "")[-EXCERPT_CHARACTERS:].strip()
    details = f"{command}: exit {done.returncode}\n{output}".strip()
    return CheckResult(done.returncode == 0, details, time.monotonic() - begun)
