"""`pointsman agent`: a worker that pulls assignments: the verifier, the surveyor, or any command-line agent."""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.crew_options import CONTRACT
from pointsman.cli.options.sandbox_options import IsolationOption, ReadOption
from pointsman.cli.options.usage import ProjectOption, fail_usage
from pointsman.cli.session.checkout_space import TreeTooLarge, checkout_notes_on_size
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.cli.session.usable_repository import repository_at
from pointsman.cli.session.workers import (
    COMMAND_ROLES,
    ROLES,
    WorkerSpec,
    profile_for,
    require_program,
    worker_for,
    workspace_for,
)
from pointsman.client import Terms
from pointsman.credentials.folder import CredentialRole
from pointsman.worker import Limits, Worker
from pointsman.worker.git import GitFailed

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Greeting:
    """The line with which a worker announces itself, and its project."""

    project: str
    as_json: bool

    def say(self, agents: Sequence[str], line: str) -> None:
        """Prints who works, as JSON or as a line."""
        shown = json.dumps({"agents": [str(one) for one in agents], "project": self.project})
        print(shown if self.as_json else line, flush=True)


@app.command()
def agent(  # noqa: PLR0913 - one parameter per option
    *,
    role: Annotated[list[str] | None, typer.Option(help=f"What to do, several times: {', '.join(ROLES)}.")] = None,
    agent_name: Annotated[
        str, typer.Option("--agent", help="A known agent: claude, codex, gemini, aider, opencode.")
    ] = "",
    command: Annotated[
        str,
        typer.Option(
            help=f"Any command line; {{prompt_file}}, {{handoff}} and {{worktree}} are filled in. As a coder: {CONTRACT}"
        ),
    ] = "",
    repo: Annotated[
        list[Path] | None, typer.Option(help="A git repository to work on, several times; default: here.")
    ] = None,
    env: Annotated[list[str] | None, typer.Option(help="A variable to pass on to the command, several times.")] = None,
    read: ReadOption = None,
    _isolation: IsolationOption = "",
    name: Annotated[str, typer.Option(help="Its name; each role is an agent NAME-ROLE. Default: the host's.")] = "",
    time_limit: Annotated[float, typer.Option(help="Seconds for one assignment.")] = 1800.0,
    output_limit: Annotated[int, typer.Option(help="Bytes that the command may print.")] = 8 * 1024 * 1024,
    capacity: Annotated[int, typer.Option(help="Assignments at the same time, per role.")] = 1,
    mock: Annotated[
        str, typer.Option(help="Play coder, reviewer and researcher without a model: success, failure, …")
    ] = "",
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: ProjectOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Who works, as a line of JSON.")] = False,
) -> None:
    """Pull assignments and do them until stopped; the first Ctrl-C finishes what is in hand."""
    _log_to_stderr()
    if mock:
        asyncio.run(_play(mock, repo or [Path()], server, Greeting(project, as_json)))
        return
    profile = profile_for(agent_name, command, env or (), read or ())
    roles = role or (["coder"] if profile else ["verifier", "surveyor"])
    for one in roles:
        if one not in ROLES:
            fail_usage(f"there is no role '{one}'; known are {', '.join(ROLES)}")
        if one in COMMAND_ROLES and profile is None:
            fail_usage(f"the role '{one}' needs --agent or --command")
    require_program(profile)
    spec = WorkerSpec(roles, profile, Limits(seconds=time_limit, output_bytes=output_limit), name, capacity)
    asyncio.run(_work(repo or [Path()], spec, server, Greeting(project, as_json)))


def _log_to_stderr() -> None:
    """Logs the worker's lines to standard error; other libraries log nothing."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    log = logging.getLogger("pointsman.worker")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


async def _work(folders: list[Path], spec: WorkerSpec, server: str, greeting: Greeting) -> None:
    for folder in folders:
        await _require_room(await repository_at(folder))
    worker = worker_for(await workspace_for(folders), spec)
    async with control_plane(server, absent=Absent.WAIT) as plane:
        client = plane.client(Terms(project=greeting.project))
        serving = asyncio.create_task(worker.serve(client))
        _stop_by_signal(worker, serving)
        greeting.say(worker.agent_ids, f"working as {', '.join(worker.agent_ids)}. Ctrl-C stops.")
        await asyncio.wait((serving,))
    if not serving.cancelled() and (error := serving.exception()) is not None:
        reasons = error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)
        print(f"pointsman: {'; '.join(dict.fromkeys(map(str, reasons)))}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


async def _require_room(top: Path) -> None:
    """Logs that a repository is large; ends the command if the disk has no room for a checkout."""
    try:
        for note in await checkout_notes_on_size(top, "HEAD"):
            logging.getLogger("pointsman.worker").info(note)
    except (TreeTooLarge, GitFailed) as error:
        fail_usage(str(error))


async def _play(outcome: str, folders: list[Path], server: str, greeting: Greeting) -> None:
    """Runs the mock agents as ordinary agents until stopped."""
    from pointsman.services.mock_agents.agents import MockAgents
    from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockPolicy, MockRole

    if outcome not in list(MockOutcome):
        fail_usage(f"there is no outcome '{outcome}'; known are {', '.join(MockOutcome)}")
    workspace = await workspace_for(folders) if any((folder / ".git").exists() for folder in folders) else None
    policy = MockPolicy(dict.fromkeys(MockRole, MockOutcome(outcome)), frozenset(MockRole))
    async with control_plane(server, absent=Absent.WAIT) as plane:
        known = workspace.repository_ids if workspace else ()
        play_as = partial(plane.open_as, CredentialRole.SERVICE)
        mocks = MockAgents(play_as, policy, project=greeting.project, repository_ids=known)
        greeting.say(list(MockRole), f"playing {', '.join(MockRole)}: {outcome}. Ctrl-C stops.")
        await asyncio.gather(*(play() for _, play in mocks.loops))


def _stop_by_signal(worker: Worker, serving: "asyncio.Task[None]") -> None:
    """The first signal stops polling, the second cancels the work."""
    stopping: list[bool] = []

    def stop() -> None:
        worker.stop()
        if stopping:
            serving.cancel()
        stopping.append(True)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
