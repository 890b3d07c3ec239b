"""`pointsman plan "<task>"`: stop after the plan; `plan show RUN`, `plan apply RUN FILE`: look at it, change it."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.cli.commands.run import RunOptions, run_order
from pointsman.cli.options.crew_options import (
    AgentOption,
    BestOfOption,
    CoderOption,
    CommandOption,
    ParallelOption,
    PlannerOption,
    ResearcherOption,
    ReviewerOption,
)
from pointsman.cli.options.order_options import AcceptOption, BudgetOption, VerboseOption, VerifyOption
from pointsman.cli.options.run_options import criteria_in_words, parse_budget
from pointsman.cli.options.sandbox_options import BaselineOption, EnvironmentOption, ReadOption, RepositoryOption
from pointsman.cli.options.usage import fail_usage, split_command
from pointsman.cli.session.control_plane import Plane
from pointsman.cli.session.crew import CrewOptions
from pointsman.cli.session.missing_agents import with_its_crew
from pointsman.cli.session.plan_review import (
    PlanReview,
    apply_plan,
    approve_plan,
    plan_lines,
    plan_of,
    plan_text,
    read_plan,
)
from pointsman.cli.session.proof_terms import TermOptions
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, ask_plane, find_run
from pointsman.client import Client, Order

app = typer.Typer(add_completion=False)


@app.command()
def plan(  # noqa: PLR0913 - one parameter per option
    *,
    words: Annotated[
        list[str], typer.Argument(metavar="TASK | show RUN | apply RUN FILE", help="What is wanted, or what to do.")
    ],
    edit: Annotated[
        bool, typer.Option("--edit", help="Open the plan in your editor before it is asked about.")
    ] = False,
    approve: Annotated[bool, typer.Option("--approve", help="Say yes to the plan, and go on with the work.")] = False,
    repo: RepositoryOption = None,
    agent: AgentOption = "",
    command: CommandOption = "",
    planner: PlannerOption = "",
    researcher: ResearcherOption = "",
    coder: CoderOption = "",
    reviewer: ReviewerOption = "",
    parallel: ParallelOption = 0,
    best_of: BestOfOption = 0,
    env: EnvironmentOption = None,
    read: ReadOption = None,
    verify: VerifyOption = None,
    accept: AcceptOption = None,
    budget: BudgetOption = "",
    no_baseline: BaselineOption = False,
    server: ServerAt = "",
    project: InProject = "local",
    verbose: VerboseOption = False,
    as_json: AsJson = False,
) -> None:
    """Have a plan made and stop: exit 4, it waits for you. Edit it, approve it, and the work begins."""
    if words[0] in ("show", "apply"):
        _look(words, (server, project), as_json=as_json, approve=approve)
        return
    if len(words) != 1:
        fail_usage('the task is one text in quotes: pointsman plan "…"; or: plan show RUN, plan apply RUN FILE')
    order = Order(
        words[0],
        verify_commands=[split_command(one, "--verify") for one in verify or ()],
        criteria=criteria_in_words(accept or ()),
        budget=parse_budget(budget),
        as_action=True,
        review_plan=True,
    )
    roles = {"planner": planner, "researcher": researcher, "coder": coder, "reviewer": reviewer}
    crew = CrewOptions(agent, command, roles, parallel, env=tuple(env or ()), read=tuple(read or ()), best_of=best_of)
    review = PlanReview(edit, approve)
    options = RunOptions(order, repo, crew, False, as_json, True, not no_baseline, TermOptions(), verbose, review)
    sys.exit(asyncio.run(run_order(options, server, project)))


def _look(words: Sequence[str], plane_of: tuple[str, str], *, as_json: bool, approve: bool) -> None:
    if len(words) != (2 if words[0] == "show" else 3):
        fail_usage("say `plan show RUN` or `plan apply RUN FILE`")
    changed = read_plan(Path(words[2])) if words[0] == "apply" else None

    async def question(client: Client, _plane: Plane) -> int:
        run = await client.runs.get(await find_run(client, words[1]))
        if changed is not None:
            run = await apply_plan(client, run, changed)
        made = changed if changed is not None else await plan_of(client, run.id)
        print(plan_text(made).rstrip() if as_json else "\n".join(plan_lines(made)))
        if approve:
            await approve_plan(client, await _asked_again(client, run))
            print(f"approved; the work goes on {with_its_crew(run.id)}", file=sys.stderr)
        return 0

    ask_plane(*plane_of, question)


async def _asked_again(client: Client, run: Run) -> Run:
    """The run once it asks about the plan that was just put in its place."""
    while not run.HasField("question"):
        await asyncio.sleep(0.1)
        run = await client.runs.get(run.id)
    return run
