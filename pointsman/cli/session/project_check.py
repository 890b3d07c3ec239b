"""Tries a project file on a commit: set-up and proof commands in a clean tree, before any agent is asked."""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.files import atomic_write
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.checkout_space import TreeTooLarge, checkout_notes_on_size
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.worker_settings import WorkerSettings
from pointsman.cli.session.workers import worker_root
from pointsman.client import Order
from pointsman.project import ProjectFile
from pointsman.project.detection import checkout_notes
from pointsman.project.includes import IncludeTooLarge
from pointsman.project.setup_plan import SetupPlan
from pointsman.project.setup_run import SetupFailed
from pointsman.proof.baseline import Baseline, CommandBaseline, State, from_json, to_json, try_base
from pointsman.proof.execution import CommandRunner
from pointsman.proof.snapshot import Repository
from pointsman.services.chassis.core.config import load
from pointsman.worker.base_project import source_at
from pointsman.worker.folders import work_folder
from pointsman.worker.git import Clone, GitFailed, repository_id
from pointsman.worker.handoff import safe_name
from pointsman.worker.proof_environment import ProofBase, ProofEnvironments
from pointsman.worker.workspace import assignments_folder

BASELINES = "baselines"
NOT_TRIED = (SetupFailed, IncludeTooLarge, TreeTooLarge, GitFailed)
"""What keeps a project file from being tried; each says what to do."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """What to try: a commit of the user's repository, its project file, and the proof commands."""

    folder: Path
    commit: str
    project: ProjectFile
    commands: Sequence[Sequence[str]]


async def try_project(trial: Trial, say: Say) -> Baseline:
    """Sets the commit up and runs the proof commands on it, or returns what an earlier trial found; SetupFailed."""
    for note in await checkout_notes_on_size(trial.folder, trial.commit):
        say(note)
    root = worker_root()
    clone = await _clone_of(trial, root)
    repository = Repository(clone.path)
    base = ProofBase(repository, trial.commit, trial.project, trial.folder)
    environments = ProofEnvironments(root, (root.parent, trial.folder))
    stored = root / BASELINES / f"{await _key(trial, clone, await environments.plan(base))}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        return from_json(stored.read_text())
    with work_folder(assignments_folder(root), "baseline") as scratch:
        runner = CommandRunner(repository, scratch, environments.furnisher(base, say))
        found = await try_base(runner, await repository.snapshot(trial.commit), trial.commands)
    if found.state is not State.BROKEN:
        atomic_write(stored, to_json(found))
    return found


async def _clone_of(trial: Trial, root: Path) -> Clone:
    """The worker's private clone of the repository, with the commit."""
    name = safe_name(await repository_id(trial.folder))
    path = root / "repositories" / f"{name}.git"
    clone = Clone(path, trial.folder, assignments_folder(root), load(WorkerSettings).limits)
    await clone.prepare()
    if not await clone.has(trial.commit):
        await clone.fetch_source(trial.commit)
    return clone


async def _key(trial: Trial, clone: Clone, plan: SetupPlan) -> str:
    """The digest of all that a baseline depends on."""
    proof, services = trial.project.proof, trial.project.workspace.services
    parts = [await clone.tree_of(trial.commit), [list(one) for one in trial.commands], plan.digest, proof.network]
    parts.append({name: command and command.text for name, command in services.items()})
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


async def require_baseline(order: Order, folder: Path, say: Say) -> Baseline:
    """What the base is like; ends the command if nothing could judge the work: set-up fails, or a proof command cannot run on the base."""
    assert order.repository is not None
    commit = order.repository.base_commit
    trial = Trial(folder, commit, await read_project(folder, commit), order.verify_commands)
    for note in await checkout_notes(await source_at(folder, commit)):
        say(note)
    try:
        found = await try_project(trial, say)
    except NOT_TRIED as error:
        fail_usage(f"nothing was submitted. {error}")
    for command in found.commands:
        if command.state is not State.BROKEN:
            say(f"base: {command.describe()}")
    if found.broken:
        shown = "\n".join(line for command in found.broken for line in broken_lines(command))
        fail_usage(f"nothing was submitted: the proof cannot run on {commit[:12]}.\n{shown}")
    return found


def broken_lines(command: CommandBaseline) -> list[str]:
    """What a broken proof command did, and what to do."""
    output = [f"  {line}" for line in command.output.splitlines()]
    return [f"`{' '.join(command.command)}`:", *output, f"BROKEN: {command.reason}"]
