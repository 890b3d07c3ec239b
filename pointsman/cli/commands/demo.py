"""`pointsman demo`: a small repository, an agent that lies at first, and everything that happens then."""

import asyncio
import shlex
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pointsman._shared.files import make_private_folder
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, Run
from pointsman.cli.commands import demo_agent
from pointsman.cli.render.run_progress import view_for
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.cli.session.delivery_branch import put_on_branch
from pointsman.cli.session.follow import exit_code, follow
from pointsman.cli.session.repository import with_repository
from pointsman.cli.session.work_on_run import patient_terms, report
from pointsman.cli.session.workers import (
    WorkerSpec,
    isolation_note,
    profile_for,
    worker_for,
    worker_running,
    workspace_for,
)
from pointsman.client import Client, Order
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.storage.file_lock import unusable
from pointsman.worker.git import git

app = typer.Typer(add_completion=False)
FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# hello\n\nA package that greets. Its test fails until somebody writes the greeting.\n",
    "hello/__init__.py": "def greeting(name: str) -> str:\n    raise NotImplementedError\n",
    "tests/__init__.py": "",
    "tests/test_hello.py": (
        "import unittest\n\nfrom hello import greeting\n\n\nclass GreetingTest(unittest.TestCase):\n"
        '    def test_greets_by_name(self) -> None:\n        self.assertEqual(greeting("Ada"), "Hello, Ada!")\n'
    ),
}


@app.command()
def demo(
    *,
    task: Annotated[str, typer.Argument(help="What is wanted.")] = "add a greeting to the hello module and test it",
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON lines.")] = False,
) -> None:
    """Take one task to COMPLETE on a small example repository, with an agent whose first try is a lie."""
    sys.exit(asyncio.run(_demo(task, as_json)))


async def _demo(task: str, as_json: bool) -> int:
    folder = await example_repository(load(StoreSettings).directory.resolve() / "demo")
    out = sys.stderr if as_json else sys.stdout
    print(f"An example repository with a failing test: {folder}", file=out, flush=True)
    command = shlex.join((sys.executable, "-I", demo_agent.__file__))
    spec = WorkerSpec(("verifier", "surveyor", "coder"), profile_for("", command), name="demo")
    say = partial(print, file=out, flush=True)
    order = await with_repository(Order(task, as_action=True), folder, say, include_changes=False)
    async with control_plane(absent=Absent.HOST) as plane:
        client = plane.client(patient_terms("local"))
        answer = await client.runs.submit(order)
        plane.announce()
        print(f"run {answer.run.id}, {isolation_note()}\n", file=out, flush=True)
        worker = worker_for(await workspace_for([folder]), spec)
        async with worker_running(client, worker):
            run = await follow(client, answer.run.id, view_for(as_json=as_json))
        await report(client, run, as_json)
        if not as_json and run.state == RUN_STATE_COMPLETE:
            await _show_delivery(client, run, folder)
        return exit_code(run)


async def example_repository(parent: Path) -> Path:
    """A fresh repository with a package whose test fails."""
    folder = await asyncio.to_thread(_write_files, parent)
    await git(folder, "init", "-q", "-b", "main")
    await git(folder, "add", "-A")
    await git(folder, "commit", "-q", "-m", "a package that does not greet yet")
    return folder


def _write_files(parent: Path) -> Path:
    try:
        make_private_folder(parent)
        folder = Path(tempfile.mkdtemp(prefix="hello-", dir=parent))
    except OSError as error:
        raise unusable(parent.parent, error) from None
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


async def _show_delivery(client: Client, run: Run, folder: Path) -> None:
    for task in run.tasks:
        if task.rejection:
            print(f"\nWhy an earlier try of {task.task_id} was refused:\n  " + task.rejection.replace("\n", "\n  "))
    branch = f"pointsman/{run.id}"
    print("\n" + await put_on_branch(client, run.id, folder, branch))
    print("\n" + (await git(folder, "diff", f"main...{branch}")).decode())
