"""`pointsman watch RUN`: follow a run, from its beginning or from a seq; with a repository, work on it too."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.cli.exit_codes import EXIT_INTERRUPTED
from pointsman.cli.options.crew_options import (
    AgentOption,
    BestOfOption,
    CoderOption,
    CommandOption,
    ParallelOption,
    PlannerOption,
    ResearcherOption,
    ReviewerOption,
    ShareOption,
    SoloOption,
)
from pointsman.cli.options.order_options import VerboseOption
from pointsman.cli.options.sandbox_options import EnvironmentOption, IsolationOption, ReadOption
from pointsman.cli.render.run_progress import view_for
from pointsman.cli.session.control_plane import Absent, control_plane, refuse_without_plane
from pointsman.cli.session.crew import BUILT_IN, CrewOptions, crew_of
from pointsman.cli.session.follow import TERMINAL, exit_code, follow, program
from pointsman.cli.session.questions import RunLeft, cancelled_by_signals
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.run_client import AsJson, InProject, RunId, ServerAt, find_run
from pointsman.cli.session.usable_repository import find_repository
from pointsman.cli.session.work_on_run import leave_run, patient_terms, report, work_and_follow
from pointsman.cli.session.worker_specs import LocalWorkers, options_to_restart
from pointsman.project import Crew
from pointsman.worker.git import text

app = typer.Typer(add_completion=False)


@app.command()
def watch(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: RunId,
    after: Annotated[int, typer.Option(help="Only transitions after this seq; without workers.")] = 0,
    repo: Annotated[
        Path | None, typer.Option(help="Work on it too, in this git repository: verifier, surveyor and the coder.")
    ] = None,
    agent: AgentOption = "",
    command: CommandOption = "",
    planner: PlannerOption = "",
    researcher: ResearcherOption = "",
    coder: CoderOption = "",
    reviewer: ReviewerOption = "",
    parallel: ParallelOption = 0,
    best_of: BestOfOption = 0,
    solo: SoloOption = False,
    share: ShareOption = False,
    env: EnvironmentOption = None,
    read: ReadOption = None,
    _isolation: IsolationOption = "",
    server: ServerAt = "",
    project: InProject = "local",
    verbose: VerboseOption = False,
    as_json: AsJson = False,
) -> None:
    """Follow a run to its end: exit 0 complete, 1 failed or cancelled, 4 waits for a person."""
    roles = {"planner": planner, "researcher": researcher, "coder": coder, "reviewer": reviewer}
    options = CrewOptions(agent, command, roles, parallel, solo, share, tuple(env or ()), tuple(read or ()), best_of)

    async def work() -> int:
        if repo is None and not options.named():
            return await _follow(run_id, after, (server, project), as_json, verbose)
        folder = await find_repository(repo)
        crew = crew_of(options, await _project_crew(folder))
        workers = LocalWorkers(folder, crew, options_to_restart(folder, crew, server, project), as_json, verbose)
        return await _work(run_id, workers, (server, project))

    sys.exit(asyncio.run(work()))


async def _project_crew(folder: Path | None) -> Crew:
    """`[crew]` of the repository as it is committed now."""
    return (await read_project(folder, await text(folder, "rev-parse", "HEAD"))).crew if folder else Crew()


async def _follow(run_id: str, after: int, plane_of: tuple[str, str], as_json: bool, verbose: bool) -> int:
    server, project = plane_of
    try:
        async with control_plane(server) as plane:
            client = plane.client(patient_terms(project))
            found = await find_run(client, run_id)
            if plane.embedded:
                _require_rest(await client.runs.get(found))
            with cancelled_by_signals():
                run = await follow(client, found, view_for(as_json=as_json, verbose=verbose), after)
            await report(client, run, as_json)
            return exit_code(run)
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED


def _require_rest(run: Run) -> None:
    """Refuses to watch a live run without a control plane; one that has ended, or waits for an answer, can be shown."""
    if run.state not in TERMINAL and not run.HasField("question"):
        refuse_without_plane(f"; or work on the run here: {program()} watch {run.id} --repo .")


async def _work(run_id: str, workers: LocalWorkers, plane_of: tuple[str, str]) -> int:
    """Follows a run and works on it with local workers."""
    server, project = plane_of
    try:
        async with control_plane(server, absent=Absent.HOST) as plane:
            client = plane.client(patient_terms(project))
            found = (await client.runs.get(await find_run(client, run_id))).id
            plane.announce()
            workers.say(f"works on {found} as {', '.join((*BUILT_IN, *workers.crew.members))}")
            return await work_and_follow(client, found, workers)
    except RunLeft as left:
        return await leave_run(left, workers, needed=True)
