"""Tries the services of a project file: each is started in a proof's sandbox and ended again."""

import tempfile
from dataclasses import replace
from pathlib import Path

from pointsman.project import InvalidProjectFile, ProjectFile
from pointsman.sandbox import Limits, SandboxSpec, failed_service, proof_environment, run
from pointsman.worker.base_project import project_at
from pointsman.worker.git import GitFailed
from pointsman.worker.ports import NoPorts, lease_services

COMMAND = ("true",)
LIMITS = Limits(seconds=180.0)


async def try_services(folder: Path) -> dict[str, str]:
    """By the name of each service that the commit checked out here asks for: why it does not start; empty when it does."""
    try:
        project = await project_at(folder, "HEAD")
    except (GitFailed, InvalidProjectFile, OSError):
        return {}
    return {name: await _problem(project, name) for name in project.workspace.services}


async def _problem(project: ProjectFile, name: str) -> str:
    """Why one service does not start."""
    alone = replace(project.workspace, ports=0, services={name: project.workspace.services[name]})
    with tempfile.TemporaryDirectory(prefix="pointsman-doctor-") as made:
        scratch = Path(made)
        try:
            with lease_services(alone) as leased:
                environment = proof_environment(scratch, project.workspace.env)
                spec = SandboxSpec(COMMAND, scratch, environment, (scratch,), limits=LIMITS, services=leased.services)
                ended = await run(replace(spec, network=project.proof.network))
        except NoPorts as error:
            return str(error)
    return failed_service(ended) or ended.reason
