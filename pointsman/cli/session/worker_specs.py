"""Who works beside a command, and where; and the options that bring them back."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman.cli.session.follow import program
from pointsman.cli.session.workers import Hire, profile_for, require_program


@dataclass(frozen=True, slots=True)
class Coder:
    """The coder, as the command line names it."""

    agent: str = ""
    command: str = ""
    env: Sequence[str] = ()

    def hire(self) -> Hire:
        """The coder if one is named, and always a verifier and a surveyor."""
        profile = profile_for(self.agent, self.command, self.env)
        require_program(profile)
        return Hire(("verifier", "surveyor", "coder") if profile else ("verifier", "surveyor"), profile)

    def options(self) -> tuple[str, ...]:
        """The options that name it again."""
        named = {"--agent": self.agent, "--command": self.command}
        given = [word for option, value in named.items() if value for word in (option, value)]
        return (*given, *(word for name in self.env for word in ("--env", name)))


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of a command, the repository they work on, and the options that bring them back."""

    folder: Path | None
    hire: Hire
    options: tuple[str, ...] = ()
    as_json: bool = False

    def say(self, line: str) -> None:
        """Tell a person; standard output is for events where those are asked for."""
        print(line, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def going_on(self, run_id: str) -> str:
        """The command that goes on with a run as this crew would."""
        return f"{program()} {shlex.join(('watch', run_id, *self.options))}"


def options_of(folder: Path | None, coder: Coder, server: str, project: str) -> tuple[str, ...]:
    """What a later command needs to be told to work as this one."""
    where = ("--repo", str(folder)) if folder else ()
    plane = (*(("--server", server) if server else ()), *(("--project", project) if project != "local" else ()))
    return (*where, *coder.options(), *plane)
