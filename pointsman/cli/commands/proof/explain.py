"""`pointsman proof explain`: what is protected and why, which commands prove, by which adapter, at which isolation."""

import asyncio
import json
from typing import Any

from pointsman.cli.commands.proof.options import AsJson, BaseRef, RepoAt, TreeRef, Verify
from pointsman.cli.session.proof_session import open_session, private_repository
from pointsman.proof.adapters.instrument import recognise
from pointsman.proof.command_files import read_scripts
from pointsman.proof.prover import protection_of
from pointsman.sandbox import probe


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
    print(f"base {values['base']}, isolation {values['isolation']}")
    for command in values["commands"]:
        print(f"`{command['command']}` is read by: {command['adapter']}")
    print(f"{len(values['protected'])} files judge the work and come from the base when it is proven:")
    for entry in values["protected"]:
        print(f"  {entry['path']}  {entry['kind']}: {entry['why']}")
    print(f"{len(values['dependencies'])} files name dependencies; a change of one is a risk that is named:")
    print("".join(f"  {path}\n" for path in values["dependencies"]), end="")


async def _explain(place: tuple[Any, str, str, tuple[str, ...]]) -> dict[str, Any]:
    repo, base, tree, verify = place
    session = await open_session(repo, base, tree, verify)
    async with private_repository(session.folder) as (repository, _):
        snapshot = await repository.snapshot(session.base)
        table = await protection_of(repository, (snapshot, snapshot), session.commands, session.section.protect)
        scripts = read_scripts(await repository.read(snapshot.entries.get("package.json")))
        protected = []
        for path in sorted(snapshot.entries):
            found = table.protection(path)
            if found is not None:
                entry = {"path": path, "kind": str(found.kind), "why": found.why, "ecosystem": found.ecosystem}
                protected.append({**entry, "keys": list(found.manifest.base) if found.manifest else []})
        commands = [
            {"command": " ".join(command), "adapter": match.adapter.name if match else "its exit code only"}
            for command in session.commands
            for match in [recognise(command, scripts)]
        ]
        locks = [path for path in sorted(snapshot.entries) if table.is_lock(path)]
    return {
        "base": session.base,
        "isolation": str(probe().level),
        "commands": commands,
        "protected": protected,
        "dependencies": locks,
    }
