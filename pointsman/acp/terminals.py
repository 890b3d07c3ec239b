"""Terminals that an agent asks for: commands whose output is bounded in size."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from acp import schema

MAX_OUTPUT = 1024 * 1024


@dataclass(slots=True)
class Terminal:
    """One command, and the end of what it printed."""

    process: asyncio.subprocess.Process
    limit: int
    output: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    reading: "asyncio.Task[None] | None" = None

    async def read(self) -> None:
        """Keep the end of the output until it ends."""
        assert self.process.stdout is not None
        while chunk := await self.process.stdout.read(65536):
            self.output += chunk
            if len(self.output) > self.limit:
                self.truncated = True
                del self.output[: -self.limit]
        await self.process.wait()

    @property
    def status(self) -> schema.TerminalExitStatus | None:
        """How it ended; None while it runs."""
        code = self.process.returncode
        if code is None:
            return None
        return schema.TerminalExitStatus(exit_code=code if code >= 0 else None, signal=str(-code) if code < 0 else None)


class Terminals:
    """The terminals of a session, by id."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._open: dict[str, Terminal] = {}

    async def start(self, line: Sequence[str], cwd: str, variables: Mapping[str, str], limit: int | None) -> str:
        """Start a command; one word with spaces is a line for the shell."""
        words = list(line) if len(line) > 1 else ["/bin/sh", "-c", line[0]]
        process = await asyncio.create_subprocess_exec(
            *words, cwd=cwd, env={**os.environ, **variables}, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        terminal = Terminal(process, min(limit or MAX_OUTPUT, MAX_OUTPUT))
        terminal.reading = asyncio.create_task(terminal.read())
        name = f"terminal-{next(self._numbers)}"
        self._open[name] = terminal
        return name

    def get(self, name: str) -> Terminal:
        """A terminal that was started and not released."""
        return self._open[name]

    async def ended(self, name: str) -> Terminal:
        """The same, once its command has ended."""
        terminal = self._open[name]
        if terminal.reading is not None:
            await terminal.reading
        return terminal

    def kill(self, name: str) -> None:
        """End the command; its output stays."""
        terminal = self._open[name]
        if terminal.process.returncode is None:
            terminal.process.kill()

    def release(self, name: str) -> None:
        """End the command and forget it."""
        self.kill(name)
        del self._open[name]
