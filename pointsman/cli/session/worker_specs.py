"""The local workers of a command: its crew, its repository, and the options that start them again."""

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.cli.session.crew import Crew
from pointsman.cli.session.follow import program
from pointsman.cli.session.plan_review import PlanReview


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """The workers of a command, their repository, and the options that start them again."""

    folder: Path | None
    crew: Crew = field(default_factory=Crew)
    options: tuple[str, ...] = ()
    as_json: bool = False
    verbose: bool = False
    """Whether the machine's states are shown."""
    review: PlanReview | None = None
    """What to do about the plan once it is there; None lets the work begin."""

    def say(self, line: str) -> None:
        """Prints a line for people: to standard error with --json, whose events are on standard output."""
        print(line, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def resume_command(self, run_id: str) -> str:
        """The command that continues a run with the same workers."""
        return f"{program()} {shlex.join(('watch', run_id, *self.options))}"


def options_to_restart(folder: Path | None, crew: Crew, server: str, project: str) -> tuple[str, ...]:
    """The options with which a later command starts the same workers."""
    where = ("--repo", str(folder)) if folder else ()
    plane = (*(("--server", server) if server else ()), *(("--project", project) if project != "local" else ()))
    return (*where, *crew.options(), *plane)
