"""Working on a run and following it to its end; and what becomes of a run that is left before."""

import sys
from pathlib import Path

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, Run
from pointsman.cli.exit_codes import EXIT_INTERRUPTED
from pointsman.cli.session.background import carry_on
from pointsman.cli.session.delivery_branch import NotDelivered, put_on_branch
from pointsman.cli.session.follow import TERMINAL, delivery_lines, exit_code, program, question_lines
from pointsman.cli.session.questions import Left, follow_or_ask
from pointsman.cli.session.worker_specs import Crew
from pointsman.cli.session.workers import worker_for, working, workspace_for
from pointsman.client import Client, Terms
from pointsman.worker.git import GitFailed

MOVE_SECONDS = 120.0
"""How long a control plane may take to come back, or to start elsewhere, before a run is left."""


def patient(project: str) -> Terms:
    """The terms of a command that follows a run: a control plane that moves is waited for."""
    return Terms(project=project, patience_seconds=MOVE_SECONDS)


async def pursue(client: Client, run_id: str, crew: Crew) -> int:
    """Work on a run, follow it to its end or to a question, print what came of it."""
    worker = worker_for(await workspace_for([crew.folder] if crew.folder else []), crew.hire)
    async with working(client, worker):
        run = await follow_or_ask(client, run_id, crew.as_json)
    await report(client, run, crew.as_json)
    if run.state == RUN_STATE_COMPLETE and run.accepted_commit and crew.folder:
        crew.say(await _branch(client, run, crew.folder))
    return exit_code(run)


async def leave(left: Left, crew: Crew, *, needed: bool) -> int:
    """Leave a run: its work goes on in the background where this command was needed for it, or it waits."""
    if not left.detached:
        print(f"stopped; {left.run_id} waits as it is. Go on: {crew.going_on(left.run_id)}", file=sys.stderr)
        print(f"  or end it: {program()} cancel {left.run_id}", file=sys.stderr)
        return EXIT_INTERRUPTED
    if needed:
        return await carry_on(left.run_id, crew)
    crew.say(f"detached; `{program()} watch {left.run_id}` follows it")
    return 0


async def _branch(client: Client, run: Run, folder: Path) -> str:
    """Put accepted work on a branch of its own; when that cannot be, say why and how to do it later."""
    try:
        return await put_on_branch(client, run.id, folder, f"pointsman/{run.id}")
    except (NotDelivered, GitFailed) as error:
        return f"not put on a branch: {error}; `pointsman deliver {run.id}` does it at any time"


async def report(client: Client, run: Run, as_json: bool) -> None:
    """Print what came of a run."""
    out = sys.stderr if as_json else sys.stdout
    if run.state in TERMINAL:
        delivery = await client.runs.delivery(run.id)
        print("\n".join(("", *delivery_lines(run, delivery))), file=out)
    else:
        print("\n".join(("", *question_lines(run))), file=out)
