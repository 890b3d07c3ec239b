"""`pointsman config`: every setting that a run here would have, and where it comes from."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman._shared.hours import Hours
from pointsman.cli.session.contexts import origin_of
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.usable_repository import find_repository
from pointsman.cli.session.worker_settings import WorkerSettings
from pointsman.project import FILE_NAME, Command, CrewMember, ProjectFile
from pointsman.project.keys import SECTIONS
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.worker.git import text
from pointsman.worker.survey import test_command_of

app = typer.Typer(add_completion=False)
OPTIONS: Mapping[str, str] = {
    "proof.verify": "--verify",
    "crew.planner": "--planner",
    "crew.researcher": "--researcher",
    "crew.coder": "--coder, --parallel",
    "crew.reviewer": "--reviewer",
    "budget.cost_usd": "--budget cost_micros=…",
    "budget.minutes": "--budget minutes=…",
    "budget.assignments": "--budget assignments=…",
    "budget.tokens": "--budget tokens=…",
    "server": "--server",
    "project": "--project",
}
"""The options of `pointsman run` that take the place of a setting."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its value, where that comes from, and the option that would win over it."""

    name: str
    value: Any
    origin: str
    option: str = ""


@app.command()
def config(
    *,
    repo: Annotated[Path | None, typer.Option(help="The git repository; default: here, if here is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The settings as JSON.")] = False,
) -> None:
    """Print every setting with its origin. An option wins over the environment, that over the file, that over defaults."""
    settings = asyncio.run(_settings(repo))
    if as_json:
        print(json.dumps([asdict(setting) for setting in settings], ensure_ascii=False, indent=2))
        sys.exit(0)
    width = max(len(setting.name) for setting in settings)
    for setting in settings:
        notes = [setting.origin, *([f"option {setting.option}"] if setting.option else [])]
        print(f"{setting.name:<{width}}  {_shown(setting.value)}  ({', '.join(notes)})")


async def _settings(repo: Path | None) -> list[Setting]:
    folder = await find_repository(repo)
    found = list(_environment_settings())
    if folder is None:
        return found
    commit = await text(folder, "rev-parse", "HEAD")
    project = await read_project(folder, commit)
    found += _file_settings(project, f"{FILE_NAME} of {commit[:12]}")
    if project.proof.verify:
        return found
    tests = " ".join(await test_command_of(folder, commit))
    guessed = Setting("proof.verify", [tests] if tests else [], "found in the repository", OPTIONS["proof.verify"])
    return [guessed if setting.name == "proof.verify" else setting for setting in found]


def _environment_settings() -> Iterator[Setting]:
    stores, worker = load(StoreSettings), load(WorkerSettings)
    values = {
        "data": (str(stores.directory), "POINTSMAN_DATA"),
        "server": (os.environ.get("POINTSMAN_SERVER", ""), "POINTSMAN_SERVER"),
        "project": (os.environ.get("POINTSMAN_PROJECT", "local"), "POINTSMAN_PROJECT"),
        "credential": (os.environ.get("POINTSMAN_CLIENT_TOKEN", ""), "POINTSMAN_CLIENT_TOKEN"),
        "worker.tree_entries": (worker.tree_entries, "POINTSMAN_WORKER_TREE_ENTRIES"),
        "worker.tree_bytes": (worker.tree_bytes, "POINTSMAN_WORKER_TREE_BYTES"),
        "worker.tree_depth": (worker.tree_depth, "POINTSMAN_WORKER_TREE_DEPTH"),
        "worker.forge_seconds": (worker.forge_seconds, "POINTSMAN_WORKER_FORGE_SECONDS"),
    }
    for name, (value, variable) in values.items():
        origin = origin_of(variable, os.environ) or "default"
        yield Setting(name, value, origin, OPTIONS.get(name, ""))


def _file_settings(project: ProjectFile, file: str) -> Iterator[Setting]:
    for section, keys in SECTIONS.items():
        values = _values_of(project, section)
        for key in keys:
            name = f"{section}.{key}"
            origin = file if name in project.given else "default"
            yield Setting(name, _plain(values[key]), origin, OPTIONS.get(name, ""))


def _values_of(project: ProjectFile, section: str) -> dict[str, Any]:
    """The values of one section by their key."""
    values: Mapping[str, Any] = {
        "workspace": project.workspace,
        "proof": project.proof,
        "crew": project.crew,
        "budget": project.budget,
        "deliver": project.deliver,
        "notify": project.notify,
    }
    found = values[section]
    return {field.name: getattr(found, field.name) for field in fields(found)}


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Command):
        return value.text
    if isinstance(value, Hours):
        return str(value)
    if isinstance(value, CrewMember):
        return {"agent": value.agent, **({"parallel": value.parallel} if value.parallel else {})}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) if item is not None else True for name, item in value.items()}
    return value


def _shown(value: Any) -> str:
    return "-" if value in ("", None, [], {}) else json.dumps(value, ensure_ascii=False)
