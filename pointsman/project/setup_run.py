"""Runs the commands of a set-up in a sandbox of its own: with the network, without input, within a time limit."""

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman.project.command_line import Command
from pointsman.project.setup_plan import SetupPlan
from pointsman.sandbox import CommandResult, EndedBy, Limits, SandboxSpec, clean_environment, run

CANNOT_START = 127
EXCERPT_LENGTH = 3000
OUTPUT_BYTES = 8 * 1024 * 1024
FILE_BYTES = 8 * 1024 * 1024 * 1024
Say = Callable[[str], None]


class SetupFailed(Exception):
    """A set-up that did not end well: no attempt at a task, no failed proof; says what to do."""


@dataclass(frozen=True, slots=True)
class SetupFolders:
    """Where a set-up runs: the tree that it sets up, and a home and temporary folder that outlive it."""

    tree: Path
    home: Path
    temporary: Path
    hidden: Sequence[Path] = ()


async def run_setup(plan: SetupPlan, folders: SetupFolders, say: Say) -> None:
    """Runs every command in its order; the first that fails ends it."""
    for folder in (folders.home, folders.temporary):
        folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + plan.seconds
    for command in plan.commands:
        say(f"set-up: `{command.text}`")
        ended = await run(sandboxed(plan, folders, command, max(deadline - time.monotonic(), 0.001)))
        if not ended.ok:
            raise SetupFailed(explain_failure(command, ended, plan.seconds))


def filled(variables: Mapping[str, str], home: Path) -> dict[str, str]:
    """Variables with the home folder filled in."""
    return {name: value.replace("{home}", str(home)) for name, value in variables.items()}


def sandboxed(plan: SetupPlan, folders: SetupFolders, command: Command, seconds: float) -> SandboxSpec:
    """A command of a set-up in its sandbox: with the network, writing to its folders alone."""
    own = {
        "HOME": str(folders.home),
        "TMPDIR": str(folders.temporary),
        "CI": "1",
        "PYTHONNOUSERSITE": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    return SandboxSpec(
        command.arguments,
        folders.tree,
        clean_environment({**own, **filled(plan.variables, folders.home)}, plan.passed_on),
        writable=(folders.tree, folders.home, folders.temporary),
        readable=(*plan.readable, *_folders_in(plan.passed_on)),
        hidden=folders.hidden,
        network=True,
        limits=Limits(seconds, OUTPUT_BYTES, FILE_BYTES),
    )


def _folders_in(names: Sequence[str]) -> tuple[Path, ...]:
    """Files and folders that the user's variables name, such as certificates and folders of packages."""
    words = [word for name in names for word in os.environ.get(name, "").split()]
    return tuple(Path(word) for word in words if word.startswith("/") and Path(word).exists())


def explain_failure(command: Command, ended: CommandResult, seconds: float) -> str:
    """What happened, the end of the output, and what to do."""
    shown = ended.excerpt(EXCERPT_LENGTH)
    if ended.ended_by is EndedBy.TIME_LIMIT:
        what = f"`{command.text}` was not done when the {seconds:g} s of all set-up commands were over, and was killed"
        advice = (
            "set-up gets no input, so a command that asks needs an option that answers, such as --yes; "
            "[workspace] timeout gives it more time"
        )
    elif ended.exit_code == CANNOT_START and shown.startswith("cannot start"):
        what = f"`{command.text}` cannot be started"
        advice = f"install {shlex.quote(command.arguments[0])}, or name another command in [workspace] setup"
    else:
        what = f"`{command.text}`: {ended.reason}"
        advice = (
            "try the command in a fresh clone (git clone . ../try); it runs with the network, with an empty home folder and "
            "without input, so a command that asks needs an option that answers, such as --yes; [workspace] in pointsman.toml says what it gets"
        )
    output = f"\n{_indented(shown)}\n" if shown else "\n"
    return f"set-up failed: {what}{output}what to do: {advice}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
