"""The local workers of a command, as its options name them, and the options that start them again."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman.cli.session.follow import program
from pointsman.cli.session.workers import WorkerSpec, profile_for, require_program


@dataclass(frozen=True, slots=True)
class Coder:
    """The coder that the options name."""

    agent: str = ""
    command: str = ""
    env: Sequence[str] = ()
    read: Sequence[Path] = ()

    def worker_spec(self) -> WorkerSpec:
        """A verifier and a surveyor, and the coder if one is named."""
        profile = profile_for(self.agent, self.command, self.env, self.read)
        require_program(profile)
        return WorkerSpec(("verifier", "surveyor", "coder") if profile else ("verifier", "surveyor"), profile)

    def options(self) -> tuple[str, ...]:
        """The options that name this coder."""
        named = {"--agent": self.agent, "--command": self.command}
        given = [word for option, value in named.items() if value for word in (option, value)]
        readable = (word for place in self.read for word in ("--read", str(place.resolve())))
        return (*given, *(word for name in self.env for word in ("--env", name)), *readable)


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """The workers of a command, their repository, and the options that start them again."""

    folder: Path | None
    spec: WorkerSpec
    options: tuple[str, ...] = ()
    as_json: bool = False

    def say(self, line: str) -> None:
        """Prints a line for people: to standard error with --json, whose events are on standard output."""
        print(line, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def resume_command(self, run_id: str) -> str:
        """The command that continues a run with the same workers."""
        return f"{program()} {shlex.join(('watch', run_id, *self.options))}"


def options_to_restart(folder: Path | None, coder: Coder, server: str, project: str) -> tuple[str, ...]:
    """The options with which a later command starts the same workers."""
    where = ("--repo", str(folder)) if folder else ()
    plane = (*(("--server", server) if server else ()), *(("--project", project) if project != "local" else ()))
    return (*where, *coder.options(), *plane)
