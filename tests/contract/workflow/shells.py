"""`pointsman workflow …` in a test: commands against a real service in a thread of its own."""

import asyncio
import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from pointsman.cli.commands.workflow import app
from tests.contract.workflow.workflows import served
from tests.helpers.limits import scaled


class Shell:
    """Runs commands against one server."""

    def __init__(self, server: str) -> None:
        self._server = server

    def run(self, line: str, *, stdin: str = "", exits: int = 0) -> Result:
        """Run a command line; what it printed."""
        words = [*shlex.split(line), "--server", self._server]
        result = CliRunner().invoke(app, words, input=stdin)
        assert result.exit_code == exits, result.output
        return result

    def shown(self, workflow_id: str) -> Any:
        """The workflow as `show --json` prints it."""
        return json.loads(self.run(f"show {workflow_id} --json").stdout)["workflow"]


@contextmanager
def workflow_shell(folder: Path) -> Iterator[Shell]:
    """A shell with a workflow service on a database in this folder."""
    address: list[str] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with served(f"sqlite:///{folder / 'cli.db'}") as client:
            address.append(client.address)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(scaled(30))
    try:
        yield Shell(address[0])
    finally:
        over.set()
        thread.join()
