"""Sets the tree of an agent up as the project file says; nothing of it is ever used by a proof or another agent.

Downloads and build caches are a copy of the agent's own: it starts warm, may add what its work needs, and poisons nobody.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointsman._shared.search_path import search_path
from pointsman.project import ProjectFile
from pointsman.project.download_copies import PrivateDownloads
from pointsman.project.environments import VIRTUAL_ENVIRONMENTS
from pointsman.project.includes import copy_includes
from pointsman.project.outputs import entries_of, new_entries
from pointsman.project.setup_plan import SetupPlan
from pointsman.project.setup_run import SetupFolders, filled, run_setup
from pointsman.project.shown_places import require_harmless
from pointsman.proof.snapshot import Repository
from pointsman.sandbox import Service
from pointsman.worker.proof_environment import ProofBase, ProofEnvironments
from pointsman.worker.sdk import log
from pointsman.worker.sessions import writes_into_tree

DOWNLOADS = "downloads"
TEMPORARY = "setup"


@dataclass(frozen=True, slots=True)
class AgentBase:
    """What an agent works on: a commit over accepted work, the run's project file, and the user's working tree."""

    repository: Path
    commit: str
    """The commit that set-up sees."""
    accepted: str
    """The commit whose downloads are copied: what was accepted before, never the work of another agent."""
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
    ask_before: tuple[str, ...] = ()
    """Kinds of tool calls that a person is asked about."""
    keeps_session: bool = False
    """Whether a session on this tree may be gone on with later: the worker writes nothing into it."""


async def set_up_tree(
    base: AgentBase, tree: Path, scratch: Path, root: Path, hidden: Sequence[Path]
) -> AgentEnvironment:
    """Sets a tree up in place. SetupFailed says what to do."""
    workspace = base.project.workspace
    require_harmless(workspace, hidden)
    before = await asyncio.to_thread(entries_of, tree)
    if base.user_folder is not None:
        await asyncio.to_thread(copy_includes, base.user_folder, tree, workspace.include)
    environments = ProofEnvironments(root, hidden)
    plan = await environments.plan(_seen(base, base.commit))
    variables = dict(workspace.env)
    if plan.commands or plan.warmups:
        accepted = _seen(base, base.accepted)
        copied = await environments.copy_downloads(accepted, scratch / DOWNLOADS, log.info)
        if plan.commands and (copied.installs or copied.digest != plan.digest):
            await run_setup(plan, SetupFolders(tree, copied.home, scratch / TEMPORARY, hidden), log.info)
        variables |= _variables(plan, copied)
    made = await asyncio.to_thread(new_entries, tree, before)
    return AgentEnvironment(
        {**_own_python(tree), **variables}, plan.readable, frozenset(made),
        ask_before=base.project.crew.ask_before, keeps_session=not writes_into_tree(base.project),
    )  # fmt: skip


def _seen(base: AgentBase, commit: str) -> ProofBase:
    return ProofBase(Repository(base.repository), commit, base.project, base.user_folder)


def _variables(plan: SetupPlan, copied: PrivateDownloads) -> dict[str, str]:
    """Where an agent's tools find its downloads: as for set-up, so that they may fetch more, into the copy."""
    found = filled(plan.variables, copied.home) if plan.commands else {}
    return {**found, **{name: str(folder) for name, folder in copied.caches.items()}}


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
