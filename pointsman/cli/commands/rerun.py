"""`pointsman rerun RUN`: do again what an ended run did, from a point of it, in a new run that is linked to it."""

import asyncio
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from pointsman import project as project_file
from pointsman.api.orchestrator.v1.orchestrator_pb2 import RerunEach
from pointsman.api.orchestrator.v1.run_pb2 import Run
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
from pointsman.cli.options.order_options import BudgetOption, VerboseOption
from pointsman.cli.options.run_options import parse_budget, parse_point
from pointsman.cli.options.sandbox_options import EnvironmentOption, IsolationOption, ReadOption, RepositoryOption
from pointsman.cli.options.selection_options import (
    LabelOption,
    MatchOption,
    OlderOption,
    Selected,
    StateOption,
    YesOption,
)
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.render.run_table import origin_text
from pointsman.cli.session.bulk import change_selected
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.cli.session.crew import CrewOptions, crew_of
from pointsman.cli.session.questions import RunLeft
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, SomeRunId, find_run
from pointsman.cli.session.usable_repository import explain_absence, find_repository
from pointsman.cli.session.work_on_run import leave_run, patient_terms, work_and_follow
from pointsman.cli.session.worker_specs import LocalWorkers, options_to_restart
from pointsman.client import Again, Client, RunsChange
from pointsman.worker.git import repository_id

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class _Rerun:
    """What is done again, by whom, and how it is shown."""

    run_id: str
    again: Again
    crew: CrewOptions
    folder: Path | None
    follows: bool
    as_json: bool
    verbose: bool


@app.command()
def rerun(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: SomeRunId = "",
    point: Annotated[
        str,
        typer.Option(
            "--from", metavar="plan|wave:N|task:T", help="Where to go on; plan, the default, plans it anew on the base."
        ),
    ] = "plan",
    text: Annotated[str, typer.Option(help="What is wanted besides, added to the message.")] = "",
    state: StateOption = None,
    label: LabelOption = None,
    older: OlderOption = "",
    match: MatchOption = "",
    yes: YesOption = False,
    repo: RepositoryOption = None,
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
    budget: BudgetOption = "",
    detach: Annotated[bool, typer.Option("--detach", help="Start it, print its id, and leave.")] = False,
    server: ServerAt = "",
    project: InProject = "local",
    verbose: VerboseOption = False,
    as_json: AsJson = False,
) -> None:
    """Do an ended run again: wave:N and task:T keep its plan and what was accepted before; exit codes as of run."""
    selected = Selected(state or (), label or (), older, match)
    selected.require_one_way(run_id)
    if selected.is_given:
        change = RunsChange(rerun=RerunEach(point=parse_point(point).point, text=text))
        change_selected(selected, change, (server, project), yes=yes, as_json=as_json)
    again = replace(parse_point(point), text=text, budget=parse_budget(budget))
    roles = {"planner": planner, "researcher": researcher, "coder": coder, "reviewer": reviewer}
    crew = CrewOptions(agent, command, roles, parallel, solo, share, tuple(env or ()), tuple(read or ()), best_of)

    async def work() -> int:
        crew_of(crew, project_file.Crew()).specs()  # what the options name has to be there, before anything else
        wanted = _Rerun(run_id, again, crew, await find_repository(repo), not detach, as_json, verbose)
        return await _start(wanted, server, project)

    sys.exit(asyncio.run(work()))


async def _start(wanted: _Rerun, server: str, project: str) -> int:
    """Starts the new run and works on it with its crew; the exit code."""
    async with control_plane(server, absent=Absent.HOST) as plane:
        client = plane.client(patient_terms(project))
        old = await client.runs.get(await find_run(client, wanted.run_id))
        crew = crew_of(wanted.crew, await _project_crew(old, wanted.folder))
        options = options_to_restart(wanted.folder, crew, server, project)
        workers = LocalWorkers(wanted.folder, crew, options, wanted.as_json, wanted.verbose)
        needed = bool(crew.members) or plane.embedded
        if needed:
            await _require_same_repository(old, wanted.folder)
        run = await client.runs.rerun(old.id, replace(wanted.again, crew=crew.message()))
        plane.announce()
        for line in (*crew.notes(), f"run {run.id}  ({origin_text(run)})"):
            workers.say(line)
        return await _follow(client, run, workers, follows=wanted.follows, needed=needed)


async def _follow(client: Client, run: Run, workers: LocalWorkers, *, follows: bool, needed: bool) -> int:
    try:
        if follows:
            return await work_and_follow(client, run.id, workers)
        return await leave_run(RunLeft(run.id, detached=True), workers, needed=needed)
    except RunLeft as left:
        return await leave_run(left, workers, needed=needed)


async def _project_crew(old: Run, folder: Path | None) -> project_file.Crew:
    """`[crew]` of the commit that the old run started from."""
    if folder is None or not old.HasField("repository"):
        return project_file.Crew()
    return (await read_project(folder, old.repository.base_commit)).crew


async def _require_same_repository(old: Run, folder: Path | None) -> None:
    """Ends the command if workers here would have another repository than the run."""
    if not old.HasField("repository"):
        return
    if folder is None:
        fail_usage(explain_absence("the work"))
    if await repository_id(folder) != old.repository.id:
        fail_usage(f"{old.id} works on another repository than {folder}; name its clone with --repo")
