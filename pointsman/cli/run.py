"""`pointsman run "<task>"`: submit, follow live, print what was delivered."""

import asyncio
import contextlib
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pointsman.api.handoff.v1.handoff_pb2 import AcceptanceCriterion
from pointsman.api.orchestrator.v1.orchestrator_pb2 import RESUME_ASK, RESUME_NO, RESUME_YES, SubmitResponse
from pointsman.api.orchestrator.v1.run_pb2 import (
    RUN_STATE_COMPLETE,
    AnswerKind,
    Budget,
    ExecutionMode,
    Repository,
    Run,
)
from pointsman.cli.deliver import NotDelivered, put_on_branch
from pointsman.cli.following import TERMINAL, delivery_lines, exit_code, follow, question_lines
from pointsman.cli.plane import control_plane
from pointsman.cli.views import view_for
from pointsman.cli.workers import Hire, fail_usage, profile_for, worker_for, working, workshop_for
from pointsman.client import CallFailed, Client, Order, Reply, Terms
from pointsman.profiles import Profile
from pointsman.worker.git import GitFailed, commit_of_changes, repository_id, text, uncommitted
from pointsman.worker.survey import test_command_of

app = typer.Typer(add_completion=False)
FAST_PATH = {"pwd": ("pwd",), "ls": ("ls",), "whoami": ("whoami",), "date": ("date",), "git status": ("git", "status")}
BUDGET_FIELDS = ("assignments", "transitions", "fan_out", "tokens", "cost_micros")


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
class Wish:
    """What the command line asks for."""

    order: Order
    folder: Path | None
    hire: Hire
    as_json: bool
    follows: bool = True


@app.command()
def run(  # noqa: PLR0913 - one parameter per option
    *,
    task: Annotated[str, typer.Argument(help="What is wanted, in your words.")],
    repo: Annotated[
        Path | None, typer.Option(help="The git repository to work on; default: here, if here is one.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The coder: claude, codex, gemini, aider, opencode.")] = "",
    command: Annotated[str, typer.Option(help="The coder, as a command line of your own.")] = "",
    env: Annotated[list[str] | None, typer.Option(help="A variable to pass on to the coder, several times.")] = None,
    pipeline: Annotated[str, typer.Option(help="The pipeline template for each task.")] = "",
    mode: Annotated[Mode, typer.Option(help="When the work pauses for a person.")] = Mode.QUALITY_GATE,
    strict: Annotated[bool, typer.Option("--strict", help="Errors of the zero-decision audit block the plan.")] = False,
    verify: Annotated[
        list[str] | None, typer.Option(help="A command that proves the work, several times; each is proven apart.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(help="What must hold besides, in words, several times; each needs a claim that stands."),
    ] = None,
    budget: Annotated[
        str, typer.Option(help=f"For example assignments=50,minutes=30; also {', '.join(BUDGET_FIELDS)}.")
    ] = "",
    include_changes: Annotated[
        bool, typer.Option("--include-changes", help="Start from uncommitted changes too.")
    ] = False,
    session: Annotated[str, typer.Option(help="Runs of one session conflict with each other; default: its own.")] = "",
    resume: Annotated[Resume | None, typer.Option(help="Unfinished work; default: ask on a terminal, else no.")] = None,
    action: Annotated[bool, typer.Option("--action", help="Start a run even if the router would only answer.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Submit, print the run's id, and leave.")] = False,
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: Annotated[str, typer.Option(help="The project to work in.")] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON lines.")] = False,
) -> None:
    """Submit a task and follow it to its end: exit 0 complete, 1 failed or cancelled, 4 waits for a person."""
    profile = profile_for(agent, command, env or ())
    folder = _folder(repo)
    order = Order(
        task,
        verify_commands=[_arguments(command) for command in verify or ()],
        criteria=[
            AcceptanceCriterion(id=f"A{number}", statement=statement, required=True)
            for number, statement in enumerate(accept or (), 1)
        ],
        mode=_MODES[mode],
        template=pipeline,
        require_audit=strict,
        budget=parse_budget(budget),
        session_id=session,
        resume=_RESUMES[resume or (Resume.ASK if sys.stdin.isatty() else Resume.NO)],
        as_action=action,
    )
    wish = Wish(order, folder, _hire(profile), as_json, not detach)
    sys.exit(asyncio.run(_run(wish, include_changes, server, project)))


def _folder(repo: Path | None) -> Path | None:
    if repo is not None:
        return repo
    return Path() if Path(".git").exists() else None


def _hire(profile: Profile | None) -> Hire:
    roles = ("verifier", "surveyor", "coder") if profile else ("verifier", "surveyor")
    return Hire(roles, profile)


def _arguments(command: str) -> tuple[str, ...]:
    """A command line as its argument list; whoever wants a shell names it: `sh -c '…'`."""
    try:
        arguments = tuple(shlex.split(command))
    except ValueError as error:
        fail_usage(f"--verify cannot be read: {error}: {command}")
    if not arguments:
        fail_usage("--verify needs a command")
    return arguments


def parse_budget(given: str) -> Budget | None:
    """`assignments=50,minutes=30` as a budget."""
    if not given:
        return None
    budget = Budget()
    for part in given.split(","):
        name, _, value = part.partition("=")
        if not value.isdigit() or name.strip() not in (*BUDGET_FIELDS, "minutes"):
            fail_usage(f"--budget takes {', '.join(BUDGET_FIELDS)} and minutes, each with a number; not '{part}'")
        if name.strip() == "minutes":
            budget.wall_clock.FromSeconds(int(value) * 60)
        else:
            setattr(budget, name.strip(), int(value))
    return budget


async def _run(wish: Wish, include_changes: bool, server: str, project: str) -> int:
    order = await order_on(wish, include_changes)
    async with control_plane(server) as plane:
        client = Client(plane.channels["orchestrator"], Terms(project=project))
        answer = await client.runs.submit(order)
        if not answer.HasField("run"):
            return _without_run(order, answer)
        _say(wish, f"run {answer.run.id}  ({answer.routing.mode}, {answer.routing.confidence})")
        if not wish.follows:
            return 0
        worker = worker_for(await workshop_for([wish.folder] if wish.folder else []), wish.hire)
        async with working(client, worker):
            run = await follow_or_ask(client, answer.run.id, wish.as_json)
        await report(client, run, wish.as_json)
        if run.state == RUN_STATE_COMPLETE and run.accepted_commit and wish.folder:
            _say(wish, await _branch(client, run, wish.folder))
        return exit_code(run)


async def _branch(client: Client, run: Run, folder: Path) -> str:
    """Put accepted work on a branch of its own; when that cannot be, say why and how to do it later."""
    try:
        return await put_on_branch(client, run.id, folder, f"pointsman/{run.id}")
    except (NotDelivered, GitFailed) as error:
        return f"not put on a branch: {error}; `pointsman deliver {run.id}` does it at any time"


async def order_on(wish: Wish, include_changes: bool) -> Order:
    """The order with its repository and, where none is given, the command that runs the repository's tests."""
    if wish.folder is None:
        return wish.order
    changes = await uncommitted(wish.folder)
    if changes and not include_changes:
        shown = ", ".join(changes[:5]) + (f" and {len(changes) - 5} more" if len(changes) > 5 else "")
        print(f"left out, because uncommitted: {shown} (--include-changes takes them in)", file=sys.stderr)
    head = await text(wish.folder, "rev-parse", "HEAD")
    commit = await commit_of_changes(wish.folder) if changes and include_changes else head
    repository = Repository(id=await repository_id(wish.folder), base_commit=commit)
    order = replace(wish.order, repository=repository)
    if order.verify_commands:
        return order
    found = await test_command_of(wish.folder, commit)
    if not found:
        return order
    _say(wish, f"proof: `{' '.join(found)}` (found in the repository; --verify names another)")
    return replace(order, verify_commands=[found])


def _say(wish: Wish, line: str) -> None:
    print(line, file=sys.stderr if wish.as_json else sys.stdout, flush=True)


def _without_run(order: Order, answer: SubmitResponse) -> int:
    """The router wants no run: do a trivial command here, from a closed list and without a shell; else say so."""
    command = FAST_PATH.get(order.message.strip().lower()) if answer.routing.fast_path else None
    if command is not None and shutil.which(command[0]):
        return subprocess.run(command, check=False).returncode  # noqa: S603 - from the closed list above
    print(f"{answer.routing.mode} ({answer.routing.confidence}): nothing to run. {answer.routing.explanation}")
    print("`pointsman run --action …` starts a run all the same.")
    return 0


async def follow_or_ask(client: Client, run_id: str, as_json: bool) -> Run:
    """Follow to the end; on a terminal, questions are asked here, and Ctrl-C asks whether to detach or to cancel."""
    run = Run()
    while run.state not in TERMINAL:
        try:
            run = await follow(client, run_id, view_for(as_json=as_json), run.seq)
        except asyncio.CancelledError:
            return await _interrupted(client, run_id)
        if not run.HasField("question") or as_json or not sys.stdin.isatty():
            return run
        run = await ask_here(client, run)
    return run


async def _interrupted(client: Client, run_id: str) -> Run:
    if not sys.stdin.isatty():
        raise asyncio.CancelledError
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    with contextlib.suppress(EOFError):
        if (await asyncio.to_thread(input, "\n[d]etach or [c]ancel the run? ")).strip().lower() == "c":
            return await client.runs.cancel(run_id, "cancelled at the terminal")
    print(f"detached; `pointsman watch {run_id}` goes on")
    sys.exit(0)


async def ask_here(client: Client, run: Run) -> Run:
    """Put the run's question to the person at the terminal."""
    names = {AnswerKind.Name(kind).removeprefix("ANSWER_KIND_").lower(): kind for kind in run.question.takes}
    print("\n".join(("", run.question.text, *(f"  {subject}" for subject in run.question.subjects))))
    said = (await asyncio.to_thread(input, f"{', '.join(names)}? ")).strip().lower()
    if said not in names:
        print(f"not one of {', '.join(names)}")
        return run
    words = await asyncio.to_thread(input, "in words (may be empty): ")
    try:
        return await client.runs.answer(run.id, run.question.id, Reply(names[said], words))
    except CallFailed as failure:
        print(failure.message)
        return run


async def report(client: Client, run: Run, as_json: bool) -> None:
    """Print what came of a run."""
    out = sys.stderr if as_json else sys.stdout
    if run.state in TERMINAL:
        delivery = await client.runs.delivery(run.id)
        print("\n".join(("", *delivery_lines(run, delivery))), file=out)
    else:
        print("\n".join(("", *question_lines(run))), file=out)
