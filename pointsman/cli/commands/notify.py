"""`pointsman notify`: tells a person about every question of a run, by webhook, Slack, ntfy or a command."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.usage import ProjectOption, fail_usage, split_command
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.cli.session.notifying import Notifier, notifier_for
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.usable_repository import find_repository, has_usable_repository
from pointsman.client import Terms
from pointsman.project.model import NotifySection
from pointsman.project.problems import Problems
from pointsman.project.reader import read_section

app = typer.Typer(add_completion=False)
PATIENCE_SECONDS = 3600.0


@app.command()
def notify(  # noqa: PLR0913 - one parameter per option
    *,
    webhook: Annotated[str, typer.Option(help="Address that takes JSON; signed with --secret-file.")] = "",
    slack: Annotated[str, typer.Option(help="Address of an incoming webhook of Slack.")] = "",
    ntfy: Annotated[str, typer.Option(help="Address of a topic of ntfy.")] = "",
    command: Annotated[str, typer.Option(help="A command that gets the notice as its last argument.")] = "",
    secret_file: Annotated[Path | None, typer.Option(help="File with the secret that signs notices.")] = None,
    console: Annotated[str, typer.Option(help="Address of the console, for links to the question.")] = "",
    quiet: Annotated[str, typer.Option(help="Hours without notices, such as 22:00-07:00; they come afterwards.")] = "",
    digest_minutes: Annotated[int, typer.Option(help="Gather questions so long for one notice.")] = 0,
    escalate: Annotated[str, typer.Option(help="Address of a second receiver of the same kind.")] = "",
    escalate_minutes: Annotated[int, typer.Option(help="Notify it after so long without an answer.")] = 0,
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: ProjectOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Nothing is printed.")] = False,  # noqa: ARG001 - every command takes it
) -> None:
    """Follow all runs and tell about each question, at least once and with the question's id; runs until it is stopped.

    Without an address or a command, [notify] of the repository here says who is notified.
    """
    given: dict[str, str | int] = {
        "webhook": webhook, "slack": slack, "ntfy": ntfy, "console": console, "quiet": quiet,
        "digest_minutes": digest_minutes, "escalate": escalate, "escalate_minutes": escalate_minutes,
        "secret_file": str(secret_file.absolute()) if secret_file is not None else "",
    }  # fmt: skip
    section = _section({name: value for name, value in given.items() if value}, command)
    words = split_command(command, "--command") if command else ()
    by_option = bool(command or webhook or slack or ntfy)
    notifier = notifier_for(section, words, project, with_answers=by_option)
    asyncio.run(_follow(notifier, server, project))


def _section(given: dict[str, str | int], command: str) -> NotifySection:
    """The options, checked as the keys of [notify] are; the file's receiver where they name none."""
    problems = Problems("")
    read = read_section(problems, "notify", given)
    for problem in problems.found:
        option = problem.key.partition(".")[2].replace("_", "-")
        fail_usage(f"--{option} {problem.message}" if option else problem.message)
    section = NotifySection(**read)
    if command or section.webhook or section.slack or section.ntfy:
        return section
    filed = asyncio.run(_filed())
    if not (filed.webhook or filed.slack or filed.ntfy):
        fail_usage(
            "name one of --webhook, --slack and --ntfy, or --command, or write [notify] into pointsman.toml here"
        )
    return replace(filed, **read)


async def _filed() -> NotifySection:
    folder = await find_repository(None) if await has_usable_repository() else None
    return (await read_project(folder, "HEAD")).notify if folder is not None else NotifySection()


async def _follow(notifier: Notifier, server: str, project: str) -> None:
    async with control_plane(server, absent=Absent.WAIT) as plane:
        await notifier.follow(plane.client(Terms(project=project, patience_seconds=PATIENCE_SECONDS)))
