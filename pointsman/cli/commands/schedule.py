"""`pointsman schedule "<task>" --cron …`: a run at every time; `schedule list`, `show`, `pause`, `resume`, `trigger`, `delete`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf.duration_pb2 import Duration

from pointsman.api.orchestrator.v1 import schedule_pb2 as pb
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.options.crew_options import BestOfOption, ParallelOption
from pointsman.cli.options.order_options import AcceptOption, BudgetOption, LenientOption, VerifyOption, require_task
from pointsman.cli.options.run_options import criteria_in_words, parse_budget, parse_template
from pointsman.cli.options.sandbox_options import RepositoryOption
from pointsman.cli.options.selection_options import parse_age
from pointsman.cli.options.usage import fail_usage, split_command
from pointsman.cli.render.schedules import schedule_lines, schedule_table
from pointsman.cli.session.crew import CrewOptions, crew_of
from pointsman.cli.session.repository import read_project, with_repository
from pointsman.cli.session.run_client import LAST, AsJson, InProject, ServerAt, ask, print_json
from pointsman.cli.session.usable_repository import find_repository
from pointsman.client import Client, Order
from pointsman.worker.git import GitFailed, text

app = typer.Typer(add_completion=False)
PREFIX = "schedule_"
MIN_CATCH_UP, MAX_CATCH_UP = 60, 31 * 86_400


class Missed(StrEnum):
    """What to do about missed times."""

    SKIP = "skip"
    ONE = "one"
    ALL = "all"


class Overlap(StrEnum):
    """What to do while an earlier run is live."""

    SKIP = "skip"
    ALLOW = "allow"


Change = Callable[[Client, str, str], Awaitable[pb.Schedule]]
CHANGES: Mapping[str, Change] = {
    "show": lambda client, schedule_id, _reason: client.schedules.get(schedule_id),
    "pause": lambda client, schedule_id, reason: client.schedules.pause(schedule_id, reason),
    "resume": lambda client, schedule_id, _reason: client.schedules.resume(schedule_id),
    "trigger": lambda client, schedule_id, _reason: client.schedules.trigger(schedule_id),
    "delete": lambda client, schedule_id, reason: client.schedules.delete(schedule_id, reason),
}


@app.command()
def schedule(  # noqa: PLR0913 - one parameter per option
    *,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TASK | list | show ID | pause ID | resume ID | trigger ID | delete ID",
            help="What is wanted, or what to do with a schedule.",
        ),
    ],
    cron: Annotated[
        str, typer.Option(help="Minute, hour, day of the month, month, day of the week: '0 3 * * *' is daily at three.")
    ] = "",
    tz: Annotated[str, typer.Option("--tz", help="The time zone of these times, such as Europe/Berlin.")] = "UTC",
    missed: Annotated[Missed, typer.Option(help="Times at which the control plane was not there.")] = Missed.ONE,
    catch_up: Annotated[
        str, typer.Option(metavar="1d", help="How late a missed run may start: m, h, d or w behind a number.")
    ] = "1d",
    overlap: Annotated[Overlap, typer.Option(help="Times that come while an earlier run is live.")] = Overlap.SKIP,
    repo: RepositoryOption = None,
    branch: Annotated[str, typer.Option(help="Each run starts from its head; default: the present branch.")] = "",
    verify: VerifyOption = None,
    accept: AcceptOption = None,
    budget: BudgetOption = "",
    parallel: ParallelOption = 0,
    best_of: BestOfOption = 0,
    lenient: LenientOption = False,
    pipeline: Annotated[str, typer.Option(help="The pipeline template for each task.")] = "",
    reason: Annotated[str, typer.Option(help="Why it is paused or deleted.")] = "",
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Start a run at every time of a calendar, from the head of a branch; `pointsman up` has to be there."""
    if words[0] == "list" or words[0] in CHANGES:
        _look(words, reason, (server, project), as_json=as_json)
        return
    if len(words) != 1:
        fail_usage(f"the task is one text in quotes; or say list, or {', '.join(CHANGES)} with the id of a schedule")
    if not cron:
        fail_usage('say when: pointsman schedule "…" --cron "0 3 * * *" [--tz Europe/Berlin]')
    spec = _spec(cron, tz, missed, overlap)
    spec.catch_up.CopyFrom(_catch_up(catch_up))
    order = Order(
        require_task(words[0]),
        verify_commands=[split_command(one, "--verify") for one in verify or ()],
        criteria=criteria_in_words(accept or ()),
        budget=parse_budget(budget),
        template=parse_template(pipeline),
        lenient=lenient,
        as_action=True,
    )
    crew = CrewOptions(parallel=parallel, best_of=best_of, share=True)
    whole = asyncio.run(_complete(order, repo, branch, crew))

    async def question(client: Client) -> int:
        _print(await client.schedules.create(whole, spec), as_json=as_json)
        return 0

    ask(server, project, question)


def _spec(cron: str, tz: str, missed: Missed, overlap: Overlap) -> pb.ScheduleSpec:
    return pb.ScheduleSpec(
        cron=cron,
        time_zone=tz,
        missed=pb.MissedPolicy.Value(f"MISSED_POLICY_{missed.upper()}"),
        overlap=pb.OverlapPolicy.Value(f"OVERLAP_POLICY_{overlap.upper()}"),
    )


def _catch_up(given: str) -> Duration:
    seconds = int(parse_age("--catch-up", given).total_seconds())
    if not MIN_CATCH_UP <= seconds <= MAX_CATCH_UP:
        fail_usage(f"--catch-up takes 1m to 31d, not '{given}'")
    return Duration(seconds=seconds)


async def _complete(order: Order, repo: Path | None, branch: str, crew: CrewOptions) -> Order:
    """The order with its repository, the branch that runs start from, and what the project file says."""
    folder = await find_repository(repo)
    if folder is None:
        return order
    based = await with_repository(order, folder, lambda _line: None, include_changes=False)
    assert based.repository is not None
    named = await _known_branch(folder, branch) if branch else await _present_branch(folder)
    members = crew_of(crew, (await read_project(folder, based.repository.base_commit)).crew)
    return replace(based, repository=Repository(id=based.repository.id, branch=named), crew=members.message())


async def _known_branch(folder: Path, name: str) -> str:
    """The branch, which has to be there by now: at night it would be too late to say so."""
    there = (await text(folder, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")).splitlines()
    if name not in there:
        fail_usage(f"--branch: '{name}' is no branch of {folder}; there are {', '.join(there[:10]) or 'none'}")
    return name


async def _present_branch(folder: Path) -> str:
    try:
        return await text(folder, "symbolic-ref", "--short", "HEAD")
    except GitFailed:
        fail_usage("no branch is checked out here; name the one that runs start from with --branch")


def _look(words: Sequence[str], reason: str, plane_of: tuple[str, str], *, as_json: bool) -> None:
    """List schedules, or show or change one."""
    name, *ids = words
    if len(ids) != (name != "list"):
        fail_usage(f"say `schedule {name}{' ID' * (name != 'list')}`")

    async def question(client: Client) -> int:
        if name == "list":
            found = [one async for one in client.schedules.all()]
            print_json(found) if as_json else print("\n".join(schedule_table(found)))
        else:
            _print(await CHANGES[name](client, await _find(client, ids[0]), reason), as_json=as_json)
        return 0

    ask(*plane_of, question)


def _print(one: pb.Schedule, *, as_json: bool) -> None:
    if as_json:
        print_json(one)
    else:
        print("\n".join(schedule_lines(one)))


async def _find(client: Client, named: str) -> str:
    """The id of a schedule that is named by the beginning of it, or as the last one made."""
    prefix = named if named.startswith(PREFIX) else f"{PREFIX}{named}"
    every = [state for state in pb.ScheduleState.values() if state]
    found = [one.id async for one in client.schedules.all(every) if named == LAST or one.id.startswith(prefix)]
    if named == LAST and found:
        return found[0]
    if len(found) > 1:
        fail_usage(f"'{named}' is the beginning of several schedules: {', '.join(found[:5])}")
    if not found:
        fail_usage(f"no schedule is called '{named}'; `pointsman schedule list` names those that are there")
    return found[0]
