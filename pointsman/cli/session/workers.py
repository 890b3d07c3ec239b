"""Starts the local workers of a command: verifier, surveyor, and the agents that play other roles."""

import asyncio
import logging
import os
import shutil
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.assignment_pb2 import Capability
from pointsman.cli.options.extras import require_extra
from pointsman.cli.options.usage import fail_usage, split_command
from pointsman.cli.session.usable_repository import repository_at
from pointsman.cli.session.worker_settings import WorkerSettings
from pointsman.client import Client
from pointsman.profiles import Profile, PromptBy, profiles
from pointsman.sandbox import available_level, supports_grades
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.worker import CommandAgent, Limits, Surveyor, Verifier, Worker, Workspace
from pointsman.worker.folders import remove_abandoned
from pointsman.worker.git import repository_id
from pointsman.worker.offers import CheckedOut
from pointsman.worker.provider_limits import account_of
from pointsman.worker.roles import NOT_BILLED, Billing
from pointsman.worker.sdk import Handler, Role, log
from pointsman.worker.sessions import is_resumable
from pointsman.worker.workspace import assignments_folder

COMMAND_ROLES: Mapping[str, Capability.ValueType] = {
    "planner": assignments.CAPABILITY_PLAN,
    "critic": assignments.CAPABILITY_DEBATE,
    "researcher": assignments.CAPABILITY_RESEARCH,
    "designer": assignments.CAPABILITY_DESIGN,
    "coder": assignments.CAPABILITY_CODE,
    "resolver": assignments.CAPABILITY_RESOLVE,
    "reviewer": assignments.CAPABILITY_REVIEW,
}
"""Roles that a command-line agent can play, and what each does."""
CAPABILITIES: Mapping[str, Capability.ValueType] = {
    **COMMAND_ROLES,
    "verifier": assignments.CAPABILITY_VERIFY,
    "surveyor": assignments.CAPABILITY_SURVEY,
}
ROLES = tuple(CAPABILITIES)
SHORT_ID = 4


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Roles that one agent plays: its profile, its limits, and how many of it at the same time."""

    roles: Sequence[str]
    profile: Profile | None = None
    limits: Limits = field(default_factory=Limits)
    name: str = ""
    capacity: int = 1
    fallback: tuple[Profile, ...] = ()
    """Who takes over, in this order, while the accounts of those before rest."""


def profile_for(
    agent: str, command: str, environment: Sequence[str] = (), readable: Sequence[Path] = (), option: str = "--command"
) -> Profile | None:
    """The profile of a named agent, or of the user's own command line."""
    if agent and command:
        fail_usage("--agent and --command both name the agent; give one of them")
    if command:
        own = Profile("command", split_command(command, option), PromptBy.FILE)
        return replace(own, environment=tuple(environment), readable=_existing(readable))
    if not agent:
        return None
    if agent not in profiles():
        instead = option if option == "--command" else f"{option} cmd:COMMAND"
        fail_usage(f"there is no agent '{agent}'; known are {', '.join(profiles())}, or give {instead}")
    known = profiles()[agent]
    readable_too = (*known.readable, *_existing(readable))
    return replace(known, environment=(*known.environment, *environment), readable=readable_too)


def _existing(places: Sequence[Path]) -> tuple[str, ...]:
    """The places that --read names, in full; ends the command if one is missing."""
    for place in places:
        if not place.exists():
            fail_usage(f"--read: there is no file or folder {place}")
    return tuple(str(place.resolve()) for place in places)


def require_program(profile: Profile | None) -> None:
    """Ends the command if the agent's program, or our side of its protocol, is missing; a path relative to the working tree cannot be checked yet."""
    if profile is not None and profile.protocol:
        require_extra(profile.protocol)
    program = profile.command[0] if profile else ""
    if not program or "{" in program or (os.sep in program and not Path(program).is_absolute()):
        return
    if shutil.which(program) is None:
        fail_usage(f"the agent's program '{program}' is not there, or not on the PATH; install it, or name another")


async def workspace_for(folders: Sequence[Path]) -> Workspace:
    """A workspace in the data directory for the repositories of these folders; removes abandoned folders."""
    tops = [await repository_at(folder) for folder in folders]
    repositories = {await repository_id(top): top for top in tops}
    root = worker_root()
    for left in await asyncio.to_thread(remove_abandoned, assignments_folder(root), spare=is_resumable):
        log.info(
            "removed %s, left by a worker that was killed%s", left.path, f" (not all: {left.error})" * bool(left.error)
        )
    return Workspace(root, repositories, load(WorkerSettings).limits)


def isolation_note() -> str:
    """At which isolation the commands of local workers run, and what follows where there is none."""
    level = available_level()
    if supports_grades(level):
        return f"commands run at isolation {level}"
    return "commands run without isolation: nothing proven here counts for more than a person's word (pointsman doctor)"


def worker_root() -> Path:
    """The folder of the workers' clones and assignment folders in the data directory."""
    return load(StoreSettings).directory.resolve() / "worker"


def worker_for(workspace: Workspace, *specs: WorkerSpec, run_id: str = "", shared: bool = False) -> Worker:
    """A worker with the given roles; with a run, it works for that run alone, or first, and has an own name."""
    name = next((spec.name for spec in specs if spec.name), socket.gethostname().split(".")[0])
    named = f"{name}-{run_id.removeprefix('run_')[:SHORT_ID]}" if run_id else name
    worker = Worker(named, workspace.repository_ids, run_ids=(run_id,) if run_id and not shared else ())
    offers = CheckedOut(workspace.folders_of_users).offers
    worker.reach = replace(worker.reach, first_run_ids=(run_id,) if run_id and shared else (), offers=offers)
    for spec in specs:
        for role in spec.roles:
            handler = _handler(workspace, spec, role)
            if handler is not None:
                billing = Billing(account_of(spec.profile)) if spec.profile is not None else NOT_BILLED
                worker.add_role(Role(role, CAPABILITIES[role], handler, spec.capacity, billing))
                _add_fallback(worker, workspace, spec, role)
    return worker


def _add_fallback(worker: Worker, workspace: Workspace, spec: WorkerSpec, role: str) -> None:
    """Each stands in for all before it; one whose account cannot rest has nobody to stand in for it."""
    if spec.profile is None or not account_of(spec.profile):
        return
    before = [account_of(spec.profile)]
    for profile in spec.fallback:
        handler = CommandAgent(workspace, profile, spec.limits).work
        billing = Billing(account_of(profile), tuple(before))
        worker.add_role(Role(f"{role}-{profile.name}", CAPABILITIES[role], handler, spec.capacity, billing))
        before.append(account_of(profile))


def _handler(workspace: Workspace, spec: WorkerSpec, role: str) -> Handler | None:
    if role == "verifier":
        return Verifier(workspace).verify
    if role == "surveyor":
        return Surveyor(workspace).research
    return CommandAgent(workspace, spec.profile, spec.limits).work if spec.profile is not None else None


@asynccontextmanager
async def worker_running(client: Client, worker: Worker) -> AsyncIterator[None]:
    """Runs a worker during the block; it logs only errors, because the run's journal is shown already."""
    logging.getLogger("pointsman.worker").setLevel(logging.ERROR)
    serving = asyncio.create_task(worker.serve(client))
    try:
        yield
    finally:
        worker.stop()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
