"""`pointsman demo`: a small repository, a crew without any model, and everything that can go wrong once."""

import asyncio
import os
import shlex
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pointsman._shared.files import make_private_folder
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, Run
from pointsman.cli.commands import demo_agent
from pointsman.cli.options.order_options import VerboseOption
from pointsman.cli.render.run_progress import view_for
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.cli.session.crew import COMMAND, Crew
from pointsman.cli.session.delivery_branch import put_on_branch
from pointsman.cli.session.follow import exit_code, follow, program
from pointsman.cli.session.repository import with_repository
from pointsman.cli.session.work_on_run import patient_terms, report
from pointsman.cli.session.workers import isolation_note, worker_for, worker_running, workspace_for
from pointsman.client import Client, Order
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.storage.file_lock import unusable
from pointsman.worker.git import git

app = typer.Typer(add_completion=False)
TEST = """\
import unittest

from shop.{module} import {name}


class {title}Test(unittest.TestCase):
    def test_{name}(self) -> None:
        self.assertEqual({name}({given}), {expected})
"""
FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# shop\n\nThree functions that are not written yet, each with a test.\n",
    "shop/__init__.py": '"""A small shop."""\n',
    "shop/price.py": "def total(prices: list[int]) -> int:\n    raise NotImplementedError\n",
    "shop/stock.py": "def left(stored: int, sold: int) -> int:\n    raise NotImplementedError\n",
    "shop/receipt.py": "def receipt(prices: list[int]) -> str:\n    raise NotImplementedError\n",
    "tests/__init__.py": "",
    "tests/test_price.py": TEST.format(module="price", name="total", title="Price", given="[1, 2, 3]", expected=6),
    "tests/test_stock.py": TEST.format(module="stock", name="left", title="Stock", given="3, 5", expected=0),
    "tests/test_receipt.py": TEST.format(
        module="receipt", name="receipt", title="Receipt", given="[1, 2]", expected='"2 items, 3"'
    ),
}
STORY = """\
Three tests of it fail. A planner makes three tasks, two coders work side by side, a reviewer looks at each change, and
the verifier proves it; they are scripts, no model is asked. Watch for: a coder that changes the test instead of the
code, a reviewer that sends work back, two coders that change the same file. None of it gets through.
"""


@app.command()
def demo(
    *,
    task: Annotated[str, typer.Argument(help="What is wanted.")] = "write the functions of the shop",
    verbose: VerboseOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON lines.")] = False,
) -> None:
    """Take a planned, reviewed run of three tasks to COMPLETE on an example repository, with scripts as agents."""
    sys.exit(asyncio.run(_demo(task, as_json, verbose)))


async def _demo(task: str, as_json: bool, verbose: bool) -> int:
    folder = await example_repository(load(StoreSettings).directory.resolve() / "demo")
    say = partial(print, file=sys.stderr if as_json else sys.stdout, flush=True)
    say(f"An example repository: {folder}\n{STORY}")
    crew = demo_crew()
    order = await with_repository(Order(task, as_action=True), folder, say, include_changes=False)
    async with control_plane(absent=Absent.HOST) as plane:
        client = plane.client(patient_terms("local"))
        answer = await client.runs.submit(replace(order, crew=crew.message()))
        say(f"run {answer.run.id}, {isolation_note()}\n")
        worker = worker_for(await workspace_for([folder]), *crew.specs(), run_id=answer.run.id)
        async with worker_running(client, worker):
            run = await follow(client, answer.run.id, view_for(as_json=as_json, verbose=verbose))
        await report(client, run, as_json, folder)
        if not as_json and run.state == RUN_STATE_COMPLETE:
            await _show_delivery(client, run, folder)
        return exit_code(run)


def demo_crew() -> Crew:
    """One script as planner, two coders and reviewer."""
    command = COMMAND + shlex.join((sys.executable, "-I", demo_agent.__file__))
    return Crew(dict.fromkeys(("planner", "coder", "reviewer"), command), {"coder": 2})


async def example_repository(parent: Path) -> Path:
    """A fresh repository with a package whose tests fail."""
    folder = await asyncio.to_thread(_write_files, parent)
    await git(folder, "init", "-q", "-b", "main")
    await git(folder, "add", "-A")
    await git(folder, "commit", "-q", "-m", "a shop that cannot sell yet")
    return folder


def _write_files(parent: Path) -> Path:
    try:
        make_private_folder(parent)
        folder = Path(tempfile.mkdtemp(prefix="shop-", dir=parent))
    except OSError as error:
        raise unusable(parent.parent, error) from None
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


async def _show_delivery(client: Client, run: Run, folder: Path) -> None:
    branch = f"pointsman/{run.id}"
    print("\n" + await put_on_branch(client, run.id, folder, branch))
    print("\n" + (await git(folder, "diff", "--stat", f"main...{branch}")).decode())
    print(_next_steps())


def _next_steps() -> str:
    """What to try after the demo, as it can be typed in another folder."""
    named = program()
    called = shlex.quote(str(Path(named).absolute())) if os.sep in named else named
    return (
        "Now in your own repository, with your agent:\n"
        f"  {called} init                       # how it is set up and proven: commit pointsman.toml\n"
        f'  {called} run "…" --agent claude     # or codex, gemini, aider, opencode'
    )
