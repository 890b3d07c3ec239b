"""`pointsman init`: look at the repository, propose `pointsman.toml`, try it in a clean tree, and write it."""

import asyncio
import json
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pointsman._shared.files import atomic_write
from pointsman.cli.exit_codes import EXIT_FAILED, EXIT_USAGE
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.project_check import NOT_TRIED, Say, Trial, broken_lines, try_project
from pointsman.cli.session.usable_repository import repository_at
from pointsman.project import FILE_NAME, InvalidProjectFile, ProjectFile, read_project_file
from pointsman.project.detection import checkout_notes, propose, render
from pointsman.proof.baseline import Baseline, State
from pointsman.worker.base_project import source_at
from pointsman.worker.git import GitFailed, text

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was tried, and what came of it."""

    content: str
    is_new: bool
    baseline: Baseline | None = None
    failure: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether a run could start with it."""
        return not self.failure and (self.baseline is None or self.baseline.state is not State.BROKEN)


@app.command()
def init(
    *,
    repo: Annotated[Path, typer.Option(help="The git repository; default: here.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write the file without asking.")] = False,
    no_try: Annotated[bool, typer.Option("--no-try", help="Propose only; run no set-up and no proof.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="What was found as JSON.")] = False,
) -> None:
    """Propose pointsman.toml and try it in a clean tree: exit 0 usable, 1 set-up or proof does not work yet, 2 nobody to ask."""
    sys.exit(asyncio.run(_init(repo, writes=yes, tries=not no_try, as_json=as_json)))


async def _init(repo: Path, *, writes: bool, tries: bool, as_json: bool) -> int:
    folder = await repository_at(repo)
    out = sys.stderr if as_json else sys.stdout

    def say(line: str) -> None:
        print(line, file=out, flush=True)

    content, is_new = await _content(folder)
    say(f"{'proposed' if is_new else 'found'}: {folder / FILE_NAME}\n\n{content}")
    found = await _tried(folder, _Found(content, is_new), say) if tries else _Found(content, is_new)
    if not is_new:
        for note in await checkout_notes(await source_at(folder, "HEAD")):
            say(note)
    if is_new and (writes or _is_wanted()):
        atomic_write(folder / FILE_NAME, content)
        say(f"written: {FILE_NAME}. Runs read it from the commit that they start from:")
        say(f"  git add {FILE_NAME} && git commit -m 'Say how work on this repository is proven'")
    elif is_new:
        say(f"not written; `pointsman init --yes` writes {FILE_NAME}")
    if as_json:
        print(json.dumps(_as_json(found, folder), ensure_ascii=False))
    unasked = is_new and tries and not writes and not as_json and not sys.stdin.isatty()
    return EXIT_FAILED if not found.is_usable else EXIT_USAGE if unasked else 0


async def _content(folder: Path) -> tuple[str, bool]:
    """The text of the project file in the working tree, or a proposal for one, and whether it is new."""
    path = folder / FILE_NAME
    if path.exists():
        return await asyncio.to_thread(path.read_text, errors="replace"), False
    base = await source_at(folder, "HEAD")
    tag = await _latest_tag(folder)
    return render(await propose(base, lambda program: shutil.which(program) is not None, tag)), True


async def _latest_tag(folder: Path) -> str:
    """The tag that the commit is described by; empty where there is none."""
    with suppress(GitFailed):
        return await text(folder, "describe", "--tags", "--abbrev=0", "HEAD")
    return ""


async def _tried(folder: Path, found: _Found, say: Say) -> _Found:
    project = _read(found.content)
    if not project.proof.verify:
        say("no command proves work yet: name one in [proof] verify")
        return _Found(found.content, found.is_new, failure="no command proves work")
    commit = await text(folder, "rev-parse", "HEAD")
    commands = [command.arguments for command in project.proof.verify]
    say(f"tried in a clean tree of {commit[:12]}:")
    try:
        baseline = await try_project(Trial(folder, commit, project, commands), say)
    except NOT_TRIED as error:
        say(str(error))
        return _Found(found.content, found.is_new, failure=str(error))
    for command in baseline.commands:
        is_broken = command.state is State.BROKEN
        say("\n".join(broken_lines(command)) if is_broken else f"proof: {command.describe()}")
    return _Found(found.content, found.is_new, baseline)


def _read(content: str) -> ProjectFile:
    try:
        return read_project_file(content.encode())
    except InvalidProjectFile as error:
        fail_usage(f"the project file has problems:\n{error}")


def _is_wanted() -> bool:
    """Asks on a terminal; elsewhere nothing is written unasked."""
    return sys.stdin.isatty() and typer.confirm(f"write {FILE_NAME}?", default=True)


def _as_json(found: _Found, folder: Path) -> dict[str, object]:
    commands = found.baseline.commands if found.baseline else ()
    return {
        "file": str(folder / FILE_NAME),
        "is_new": found.is_new,
        "content": found.content,
        "state": str(found.baseline.state) if found.baseline else "",
        "failure": found.failure,
        "commands": [
            {
                "command": list(one.command),
                "state": str(one.state),
                "tests": one.tests,
                "red": list(one.red),
                "reason": one.reason,
            }
            for one in commands
        ],
    }
