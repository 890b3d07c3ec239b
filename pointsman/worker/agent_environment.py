"""Sets the tree of an agent up as the project file says; nothing of it is ever used by a proof."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointsman._shared.search_path import search_path
from pointsman.project import ProjectFile
from pointsman.project.environments import DIGEST_LENGTH, VIRTUAL_ENVIRONMENTS
from pointsman.project.includes import copy_includes
from pointsman.project.outputs import entries_of, new_entries
from pointsman.project.setup_plan import plan_setup
from pointsman.project.setup_run import SetupFolders, run_setup
from pointsman.project.shown_places import require_harmless
from pointsman.sandbox import Service
from pointsman.worker.base_project import source_at
from pointsman.worker.sdk import log

DOWNLOADS = "agent-downloads"
TEMPORARY = "setup"


@dataclass(frozen=True, slots=True)
class AgentBase:
    """What an agent works on: a commit of a repository, the run's project file, and the user's working tree."""

    repository: Path
    commit: str
    project: ProjectFile
    user_folder: Path | None = None


@dataclass(frozen=True, slots=True)
class AgentEnvironment:
    """What a set-up gives to an agent."""

    variables: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    made: frozenset[str] = frozenset()
    """Files and folders of the tree that are no part of the work."""
    services: tuple[Service, ...] = ()


async def set_up_tree(
    base: AgentBase, tree: Path, scratch: Path, root: Path, hidden: Sequence[Path]
) -> AgentEnvironment:
    """Sets a tree up in place; downloads are shared by set-ups of one digest alone. SetupFailed says what to do."""
    workspace = base.project.workspace
    require_harmless(workspace, hidden)
    before = await asyncio.to_thread(entries_of, tree)
    if base.user_folder is not None:
        await asyncio.to_thread(copy_includes, base.user_folder, tree, workspace.include)
    plan = await plan_setup(workspace, await source_at(base.repository, base.commit))
    if plan.commands:
        home = root / DOWNLOADS / plan.digest[:DIGEST_LENGTH]
        await run_setup(plan, SetupFolders(tree, home, scratch / TEMPORARY, hidden), log.info)
    made = await asyncio.to_thread(new_entries, tree, before)
    return AgentEnvironment({**_own_python(tree), **workspace.env}, plan.readable, frozenset(made))


def _own_python(tree: Path) -> dict[str, str]:
    """The tree's own virtual environment, first on PATH."""
    for name in VIRTUAL_ENVIRONMENTS:
        programs = tree / name / "bin"
        if (programs / "python").exists():
            return {
                "VIRTUAL_ENV": str(tree / name),
                "PATH": f"{programs}{os.pathsep}{search_path()}",
            }
    return {}
