"""What is run in a sandbox, what it may use, and how it ended."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pointsman._shared.excerpt import excerpt
from pointsman.sandbox.level import Level


class EndedBy(StrEnum):
    """What ended a command."""

    ITSELF = "itself"
    TIME_LIMIT = "time_limit"
    OUTPUT_LIMIT = "output_limit"
    PROCESS_LIMIT = "process_limit"
    STOPPED = "stopped"


_ENDINGS = {
    EndedBy.TIME_LIMIT: "ran past its time limit",
    EndedBy.OUTPUT_LIMIT: "printed past its output limit",
    EndedBy.PROCESS_LIMIT: "started more processes than it may",
    EndedBy.STOPPED: "was stopped",
}
REFUSALS = (
    b"Permission denied",
    b"Read-only file system",
    b"Operation not permitted",
    b"is not visible in the sandbox",
)
"""What programs say when the sandbox refuses something."""
REFUSED_LINES, REFUSED_LENGTH = 3, 200


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use."""

    seconds: float = 1800.0
    output_bytes: int = 8 * 1024 * 1024
    file_bytes: int = 1024 * 1024 * 1024
    processes: int = 512


@dataclass(frozen=True, slots=True)
class Service:
    """A server that runs inside the sandbox, beside the command, for as long as the command does."""

    name: str
    command: tuple[str, ...] | None
    """`{port}` and `{folder}` in it are filled in; None for PostgreSQL."""
    port: int


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """A command and all that it may see and use; system folders and the toolchains of its PATH are always readable."""

    command: Sequence[str]
    directory: Path
    """Where it starts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """All of its variables; nothing is inherited. `proof_environment` and `clean_environment` make them."""
    writable: Sequence[Path] = ()
    """Files and folders that it may change; they are readable too. Whatever else it writes is refused or discarded."""
    readable: Sequence[Path] = ()
    """Further files and folders that it may read, at the same path."""
    hidden: Sequence[Path] = ()
    """Never visible, also below a readable folder: the user's clone, the data directory, credentials."""
    network: bool = False
    """Whether it may connect to anything; a proof may not."""
    stdin: Path = Path(os.devnull)
    limits: Limits = field(default_factory=Limits)
    level: Level | None = None
    """The level to run at; the strongest that the machine offers when not given."""
    services: Sequence[Service] = ()
    """Servers of its own, which it finds in its variables."""
    on_output: Callable[[bytes], None] | None = None
    """Gets what the command prints, as it is printed."""
    clock: "Clock | None" = None
    """Stops its time."""


@dataclass(slots=True)
class Clock:
    """Stops the time of a running command while it waits for a person, so that waiting does not use it up."""

    send: Callable[[bool], None] | None = None
    """Has the supervisor of the command stop its time, or start it again, once there is one."""
    waiting: int = 0

    def stop(self) -> None:
        """The command begins to wait for one thing more."""
        self.waiting += 1
        if self.waiting == 1 and self.send is not None:
            self.send(True)  # noqa: FBT003 - one argument, named above

    def go_on(self) -> None:
        """It waits for one thing less."""
        self.waiting -= 1
        if not self.waiting and self.send is not None:
            self.send(False)  # noqa: FBT003 - as above


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended and what it printed; `digest` covers all output that was read."""

    exit_code: int
    ended_by: EndedBy
    output: bytes
    digest: str
    strays: int = 0
    """Processes that it left behind and that were killed."""
    level: Level = Level.NONE
    """The isolation that it ran at."""
    denied_connects: int = 0
    """Connections and datagrams for which its own network had no way out."""
    denied_names: tuple[str, ...] = ()
    """Names of hosts that it asked for."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.ended_by is EndedBy.ITSELF and self.exit_code == 0

    @property
    def reason(self) -> str:
        """Why it is not ok; empty when it is."""
        if self.ok:
            return ""
        if self.ended_by is EndedBy.ITSELF:
            return f"it ended with exit code {self.exit_code}"
        return f"it {_ENDINGS[self.ended_by]} and was killed"

    @property
    def notes(self) -> str:
        """What a person should know besides: the isolation, what was killed, and whether something seems refused."""
        said = [f"isolation {self.level}"]
        if self.strays:
            said.append(f"{self.strays} processes that it left behind were killed")
        if self.denied:
            said.append(self.denied)
        if refused := self.refused_lines:
            named = " · ".join(refused)
            said.append(
                f"the sandbox may have refused what it tried ({named}); --read and [workspace] read show it more"
            )
        return "; ".join(said)

    @property
    def denied(self) -> str:
        """What it tried to reach without a network, and the way out; empty when it tried nothing that could be seen."""
        if not self.denied_connects and not self.denied_names:
            return ""
        named = f" ({', '.join(self.denied_names)})" if self.denied_names else ""
        count = self.denied_connects + len(self.denied_names)
        return (
            f"it has no network and tried {count} times to reach other hosts{named}; [proof] network = true allows it"
        )

    @property
    def refused_lines(self) -> tuple[str, ...]:
        """What the command printed about things that it was refused, with their paths; the output is all that is known."""
        if self.level is Level.NONE or not any(words in self.output for words in REFUSALS):
            return ()
        lines = [line.strip() for line in self.output.splitlines() if any(words in line for words in REFUSALS)]
        shown = dict.fromkeys(line.decode(errors="replace").replace("\0", "")[:REFUSED_LENGTH] for line in lines)
        return tuple(shown)[:REFUSED_LINES]

    def excerpt(self, length: int = 2000) -> str:
        """What of the output explains how it ended, as text without NUL."""
        return excerpt(self.output.decode(errors="replace").replace("\0", "").strip(), length)
