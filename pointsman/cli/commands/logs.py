"""`pointsman logs RUN`: what a run's agents printed, whole where they have ended, and live with -f."""

import asyncio
import json
import sys
from typing import Annotated

import typer

from pointsman.api.orchestrator.v1.agent_pb2 import OutputChunk
from pointsman.api.orchestrator.v1.assignment_pb2 import Assignment, Transcript
from pointsman.cli.exit_codes import EXIT_INTERRUPTED
from pointsman.cli.render.agent_output import OutputPrinter
from pointsman.cli.render.json_output import as_dict
from pointsman.cli.session.follow import program
from pointsman.cli.session.questions import cancelled_by_signals
from pointsman.cli.session.run_client import AsJson, InProject, RunId, ServerAt, ask, find_run
from pointsman.client import CallFailed, Client

app = typer.Typer(add_completion=False)


@app.command()
def logs(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: RunId,
    task: Annotated[str, typer.Option(help="Only of this task.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Print what the agents of a run printed, secrets masked: `pointsman logs RUN --task T1 -f`."""

    async def show(client: Client) -> int:
        try:
            with cancelled_by_signals():
                await _show(client, run_id, task, follow=follow, as_json=as_json)
        except asyncio.CancelledError:
            return EXIT_INTERRUPTED
        return 0

    ask(server, project, show)


async def _show(client: Client, named: str, task_id: str, *, follow: bool, as_json: bool) -> None:
    """Yields transcripts of ended assignments, then the stored tails of the others, then new output."""
    run_id = await find_run(client, named)
    printer, whole, has_output = OutputPrinter(sys.stdout), set(), False
    for assignment in [item async for item in client.agents.assignments(run_id)]:
        if task_id not in ("", assignment.task_id):
            continue
        for transcript in assignment.transcripts:
            chunk = await _whole(client, assignment, transcript)
            if chunk is not None:
                whole.add((assignment.id, transcript.epoch))
                has_output = True
                _print(printer, chunk, as_json=as_json)
    async for chunk in client.agents.output(run_id, task_id, follow=follow):
        has_output = True
        if (chunk.assignment_id, chunk.epoch) not in whole:
            _print(printer, chunk, as_json=as_json)
    printer.close()
    if not has_output and not as_json:
        of_task = f" for task {task_id}" if task_id else ""
        print(f"no agent of {run_id} has printed anything{of_task}; see `{program()} show {run_id}`", file=sys.stderr)


async def _whole(client: Client, assignment: Assignment, transcript: Transcript) -> OutputChunk | None:
    """A transcript as one chunk; None where the control plane does not have it any more."""
    try:
        body = await client.artifacts.get(transcript.artifact)
    except CallFailed:
        return None
    return OutputChunk(
        assignment_id=assignment.id,
        purpose=assignment.purpose,
        task_id=assignment.task_id,
        stage=assignment.stage,
        agent_id=transcript.agent_id,
        epoch=transcript.epoch,
        text=body.decode(errors="replace"),
    )


def _print(printer: OutputPrinter, chunk: OutputChunk, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(as_dict(chunk), ensure_ascii=False), flush=True)
    else:
        printer.show(chunk)
