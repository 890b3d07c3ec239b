"""`pointsman run "<task>"`: submit, follow live, print what was delivered."""

import asyncio
import json
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pointsman import project as project_file
from pointsman.api.orchestrator.v1.agent_pb2 import AGENT_STATE_LOST as LOST
from pointsman.api.orchestrator.v1.assignment_pb2 import CAPABILITY_PLAN
from pointsman.api.orchestrator.v1.orchestrator_pb2 import RESUME_ASK, RESUME_NO, RESUME_YES, SubmitResponse
from pointsman.api.orchestrator.v1.run_pb2 import ExecutionMode
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
from pointsman.cli.options.order_options import (
    AcceptOption,
    BarrierTimeoutOption,
    BudgetOption,
    FixesOption,
    IncludeChangesOption,
    LenientOption,
    RequireOption,
    TagOption,
    TaskArgument,
    TasksOption,
    TestsMayChangeOption,
    VerboseOption,
    VerifyFromOption,
    VerifyOption,
)
from pointsman.cli.options.run_options import (
    criteria_in_words,
    parse_barrier_timeout,
    parse_budget,
    parse_template,
)
from pointsman.cli.options.sandbox_options import (
    BaselineOption,
    EnvironmentOption,
    IsolationOption,
    OfferedOption,
    ReadOption,
)
from pointsman.cli.options.usage import ProjectOption, split_command
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.cli.session.crew import CrewOptions, crew_of
from pointsman.cli.session.fast_path import ACCEPTED_COMMANDS, argv_of, execute
from pointsman.cli.session.offered_repository import offered_name, with_offer
from pointsman.cli.session.plan_review import PlanReview
from pointsman.cli.session.project_check import require_baseline
from pointsman.cli.session.proof_terms import TermOptions, read_checks, require_red
from pointsman.cli.session.questions import RunLeft
from pointsman.cli.session.repository import read_project, require_repository, starts_run, with_repository
from pointsman.cli.session.task_file import plan_from_file
from pointsman.cli.session.usable_repository import find_repository
from pointsman.cli.session.work_on_run import leave_run, patient_terms, work_and_follow
from pointsman.cli.session.worker_specs import LocalWorkers, options_to_restart
from pointsman.cli.session.workers import isolation_note
from pointsman.client import Client, Order
from pointsman.proof.baseline import Baseline

app = typer.Typer(add_completion=False)


class Resume(StrEnum):
    """What to do about unfinished work."""

    ASK = "ask"
    YES = "yes"
    NO = "no"


class Mode(StrEnum):
    """When the work pauses for a person."""

    STEP = "step"
    PHASE = "phase"
    QUALITY_GATE = "quality_gate"


_MODES = {mode: ExecutionMode.Value(f"EXECUTION_MODE_{mode.upper()}") for mode in Mode}
_RESUMES = {Resume.ASK: RESUME_ASK, Resume.YES: RESUME_YES, Resume.NO: RESUME_NO}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `pointsman run`."""

    order: Order
    repo: Path | None
    crew: CrewOptions
    include_changes: bool
    as_json: bool
    follows: bool
    tries_base: bool
    terms: TermOptions
    verbose: bool = False
    review: PlanReview | None = None
    """What to do about the plan once it is there; None lets the work begin."""


@app.command()
def run(  # noqa: PLR0913, PLR0917 - one parameter per option
    task: TaskArgument,
    repo: OfferedOption = None,
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
    pipeline: Annotated[str, typer.Option(help="The pipeline template for each task.")] = "",
    barrier_timeout: BarrierTimeoutOption = None,
    lenient: LenientOption = False,
    mode: Annotated[Mode, typer.Option(help="When the work pauses for a person.")] = Mode.QUALITY_GATE,
    strict: Annotated[bool, typer.Option("--strict", help="Errors of the zero-decision audit block the plan.")] = False,
    verify: VerifyOption = None,
    accept: AcceptOption = None,
    budget: BudgetOption = "",
    fixes: FixesOption = None,
    verify_from: VerifyFromOption = "",
    require: RequireOption = None,
    tests_may_change: TestsMayChangeOption = False,
    tasks: TasksOption = None,
    tag: TagOption = "",
    include_changes: IncludeChangesOption = False,
    session: Annotated[str, typer.Option(help="Runs of one session conflict with each other; default: its own.")] = "",
    resume: Annotated[Resume | None, typer.Option(help="Unfinished work; default: ask on a terminal, else no.")] = None,
    action: Annotated[bool, typer.Option("--action", help="Start a run even if the router would only answer.")] = False,
    no_baseline: BaselineOption = False,
    detach: Annotated[bool, typer.Option("--detach", help="Submit, print the run's id, and leave.")] = False,
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: ProjectOption = "local",
    verbose: VerboseOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON lines.")] = False,
) -> None:
    """Submit a task and follow it to its end: exit 0 complete, 1 failed or cancelled, 4 waits for a person."""
    terms = TermOptions(tuple(fixes or ()), verify_from, require, tests_may_change)
    order = Order(
        task,
        verify_commands=[split_command(command, "--verify") for command in verify or ()],
        criteria=criteria_in_words(accept or ()),
        mode=_MODES[mode],
        template=parse_template(pipeline),
        require_audit=strict,
        budget=parse_budget(budget),
        session_id=session,
        resume=_RESUMES[resume or (Resume.ASK if sys.stdin.isatty() else Resume.NO)],
        as_action=action, lenient=lenient, barrier_timeout_seconds=parse_barrier_timeout(barrier_timeout),
    )  # fmt: skip
    own = PlanReview(approve=True, given=plan_from_file(tasks, tag)) if tasks is not None else None
    roles = {"planner": planner, "researcher": researcher, "coder": coder, "reviewer": reviewer}
    crew = CrewOptions(agent, command, roles, parallel, solo, share, tuple(env or ()), tuple(read or ()), best_of)
    options = RunOptions(order, repo, crew, include_changes, as_json, not detach, not no_baseline, terms, verbose, own)
    sys.exit(asyncio.run(run_order(options, server, project)))


async def run_order(options: RunOptions, server: str, project: str) -> int:
    """Submits an order and works on it with its crew; the exit code."""
    crew_of(options.crew, project_file.Crew()).specs()  # what the options name has to be there, before anything else
    name, notes = "" if options.crew.named() else offered_name(options.repo), list[str]()
    folder = None if name else await find_repository(options.repo)
    order = await with_repository(options.order, folder, notes.append, include_changes=options.include_changes)
    crew = crew_of(options.crew, await _project_crew(order, folder))
    order = replace(order, crew=crew.message(), proof_terms=options.terms.message())
    if options.review is not None and options.review.given is not None:
        order = replace(order, review_plan=True, brings_plan=True)
    again = options_to_restart(folder, crew, server, project)
    workers = LocalWorkers(folder, crew, again, options.as_json, options.verbose, options.review)
    notes += crew.notes()
    needed = bool(crew.members)
    require_repository(order, folder, is_local=needed)
    checks = await read_checks(options.terms.verify_from, folder, order)
    tried = await _try_base(order, workers, notes) if options.tries_base and starts_run(order) else None
    require_red(options.terms.fixes, tried)
    try:
        async with control_plane(server, absent=Absent.HOST) as plane:
            needed = needed or plane.embedded
            client = plane.client(patient_terms(project))
            order = await with_offer(client, order, name, notes.append)
            require_repository(order, folder, is_local=needed)
            await _note_single_step(client, order, workers)
            answer = await client.runs.submit(await checks.upload(client, order))
            if not answer.HasField("run"):
                return _without_run(order, answer, options.as_json)
            plane.announce()
            for note in notes:
                workers.say(note)
            workers.say(f"run {answer.run.id}  ({answer.routing.mode}, {answer.routing.confidence})")
            if needed:
                workers.say(isolation_note())
            if options.follows:
                return await work_and_follow(client, answer.run.id, workers)
        return await leave_run(RunLeft(answer.run.id, detached=True), workers, needed=needed)
    except RunLeft as left:
        return await leave_run(left, workers, needed=needed)


async def _project_crew(order: Order, folder: Path | None) -> project_file.Crew:
    """`[crew]` of the commit that the run starts from."""
    if folder is None or order.repository is None:
        return project_file.Crew()
    return (await read_project(folder, order.repository.base_commit)).crew


async def _try_base(order: Order, workers: LocalWorkers, notes: list[str]) -> Baseline | None:
    """Says what is known so far, then tries set-up and proof on the base, which can take a while."""
    while notes:
        workers.say(notes.pop(0))
    if workers.folder is None or not order.verify_commands:
        return None
    return await require_baseline(order, workers.folder, workers.say)


async def _note_single_step(client: Client, order: Order, workers: LocalWorkers) -> None:
    """Warns that without a planner the plan is one task, so that step and phase mode never pause."""
    if order.mode not in (_MODES[Mode.STEP], _MODES[Mode.PHASE]):
        return
    if not any([CAPABILITY_PLAN in one.capabilities and one.state != LOST async for one in client.agents.all()]):
        workers.say("no planner is there: the plan will be one task, and the work does not pause within it")


def _without_run(order: Order, answer: SubmitResponse, as_json: bool) -> int:
    """Handles a message that starts no run: executes a trivial command, else prints the routing decision."""
    routing = answer.routing
    argv = argv_of(order.message) if routing.fast_path else None
    if as_json:
        fields = ("mode", "confidence", "fast_path", "explanation")
        shown = {"run": None, **{name: getattr(routing, name) for name in fields}}
        done = execute(argv, capture=True) if argv is not None else None
        if done is not None:
            shown |= {"command": argv, "exit_code": done.exit_code, "output": done.output}
        print(json.dumps(shown, ensure_ascii=False))
        return done.exit_code if done is not None else 0
    if argv is not None:
        return execute(argv).exit_code
    print(f"{routing.mode} ({routing.confidence}): nothing to run. {routing.explanation}")
    if routing.fast_path:
        print(f"Executed at once are only: {ACCEPTED_COMMANDS}.")
    print("`pointsman run --action …` starts a run all the same.")
    return 0
