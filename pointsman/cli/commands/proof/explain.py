"""`pointsman proof explain`: what is protected and why, which commands prove, by which adapter, at which isolation."""

import asyncio
import json
import shlex
from collections.abc import Iterator
from typing import Any

from pointsman.cli.commands.proof.options import AsJson, BaseRef, RepoAt, TreeRef, Verify
from pointsman.cli.session.proof_session import open_session, private_repository
from pointsman.project.setup_plan import plan_setup
from pointsman.proof.adapters.instrument import recognise
from pointsman.proof.command_files import read_scripts
from pointsman.proof.execution import fake_time_library
from pointsman.proof.protection.rules import ProtectionTable
from pointsman.proof.prover import protection_of
from pointsman.proof.snapshot import Snapshot
from pointsman.sandbox import probe, supports_grades
from pointsman.worker.base_project import source_at

EXIT_CODE_ONLY = "its exit code only, which is an open risk"


def explain(
    *,
    base: BaseRef = "",
    tree: TreeRef = "",
    repo: RepoAt = None,
    verify: Verify = [],  # noqa: B006 - typer reads it and never changes it
    as_json: AsJson = False,
) -> None:
    """Say what a proof would protect and run here, without running it."""
    values = asyncio.run(_explain((repo, base, tree, tuple(verify))))
    if as_json:
        print(json.dumps(values, ensure_ascii=False))
        return
    print("\n".join(_lines(values)))


def _lines(values: dict[str, Any]) -> Iterator[str]:
    grades = "" if values["supports_grades"] else "; without isolation no grade is above ON WORD"
    yield f"base {values['base']}, isolation {values['isolation']}{grades}"
    for command in values["commands"]:
        yield f"`{command['command']}`, {command['from']}, is read by: {command['adapter']}"
    other_time = "another time" if values["pretends_time"] else "the same time, because libfaketime is not installed"
    again = f"; again in another order and folder, at {other_time}" if values["repeat"] > 1 else ""
    count = "once" if values["repeat"] == 1 else f"{values['repeat']} times"
    yield f"each runs {count} with the base's tests{again}, for {values['timeout']} s at most"
    yield f"commands {'may connect' if values['network'] else 'connect to nothing'}"
    yield from (f"set-up: `{command}`" for command in values["setup"])
    yield from (f"build cache, filled once from the base: `{command}`" for command in values["build_caches"])
    yield f"{len(values['protected'])} files judge the work and come from the base when it is proven:"
    for entry in values["protected"]:
        changed = ", changed by the work" if entry["changed"] else ""
        keys = f" ({', '.join(entry['keys'])})" if entry["keys"] else ""
        yield f"  {entry['path']}  {entry['kind']}{changed}: {entry['why']}{keys}"
    yield f"{len(values['dependencies'])} files name dependencies; a change of one is a risk that is named:"
    yield from (f"  {path}" for path in values["dependencies"])


async def _explain(place: tuple[Any, str, str, tuple[str, ...]]) -> dict[str, Any]:
    repo, base, tree, verify = place
    session = await open_session(repo, base, tree, verify)
    section = session.section
    async with private_repository(session.folder) as (repository, _):
        snapshot = await repository.snapshot(session.base)
        delivered = await repository.snapshot(session.delivered)
        table = await protection_of(repository, (snapshot, delivered), session.commands, section.protect)
        scripts = read_scripts(await repository.read(snapshot.entries.get("package.json")))
        plan = await plan_setup(session.project.workspace, await source_at(repository.path, session.base))
    origin = "named by --verify" if verify else "from pointsman.toml" if section.verify else "found in the repository"
    level = probe().level
    return {
        "base": session.base,
        "isolation": str(level),
        "supports_grades": supports_grades(level),
        "commands": [
            {"command": shlex.join(command), "from": origin, "adapter": found.adapter.name if found else EXIT_CODE_ONLY}
            for command in session.commands
            for found in [recognise(command, scripts)]
        ],
        "repeat": section.repeat,
        "timeout": section.timeout,
        "network": section.network,
        "pretends_time": fake_time_library() is not None,
        "setup": [command.text for command in plan.commands],
        "build_caches": [warmup.command.text for warmup in plan.warmups],
        "protected": _protected(table, snapshot, delivered),
        "dependencies": [path for path in sorted(snapshot.entries) if table.is_lock(path)],
    }


def _protected(table: ProtectionTable, base: Snapshot, delivered: Snapshot) -> list[dict[str, Any]]:
    """Every protected file of both commits, with the reason and whether the work changed it."""
    rows = []
    for path in sorted({*base.entries, *delivered.entries}):
        found = table.protection(path)
        if found is not None:
            row = {"path": path, "kind": str(found.kind), "why": found.why, "ecosystem": found.ecosystem}
            changed = base.entries.get(path) != delivered.entries.get(path)
            rows.append({**row, "changed": changed, "keys": list(found.manifest.base) if found.manifest else []})
    return rows
