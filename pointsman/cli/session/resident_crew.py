"""The resident workers of `pointsman up`: the crew of a repository, which takes work that was started anywhere."""

import logging
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.control_plane import announced_plane
from pointsman.cli.session.crew import Crew, CrewOptions, crew_of
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.usable_repository import explain_absence, find_repository, has_usable_repository
from pointsman.cli.session.workers import worker_for, workspace_for
from pointsman.client import Terms
from pointsman.project import FILE_NAME
from pointsman.services.chassis.core.supervision import Loops
from pointsman.worker import Worker
from pointsman.worker.git import repository_id

NAME = "up"
"""Stands in the names of resident agents, so that they are never those of `pointsman agent` on the same machine."""
NO_CREW = f"no workers: no [crew] in {FILE_NAME} here; `pointsman agent` starts some"


@dataclass(frozen=True, slots=True)
class ResidentCrew:
    """The workers of a repository; an agent's program is started only for an assignment."""

    folder: Path
    repository_id: str
    crew: Crew
    worker: Worker

    def lines(self) -> list[str]:
        """Who works on what, for people."""
        where = f"they work on {self.folder}; none is started before there is work (--no-crew leaves them out)"
        return [*self.crew.notes(), where]

    @asynccontextmanager
    async def working(self, lock: Path, project: str) -> AsyncIterator[None]:
        """Works for the control plane of the data directory during the block; a worker that fails is started again."""
        logging.getLogger("pointsman.worker").setLevel(logging.INFO)
        async with announced_plane(lock) as plane:
            loops, client = Loops(), plane.client(Terms(project=project))
            loops.start("crew", lambda: self.worker.serve(client))
            try:
                yield
            finally:
                await loops.stop()


async def resident_crew(repo: Path | None, options: CrewOptions) -> ResidentCrew | None:
    """The crew of the named repository, else of the one here; None where nobody is named to code."""
    named = options.named()
    folder = await find_repository(repo) if repo or named or await has_usable_repository() else None
    if folder is None:
        return fail_usage(explain_absence("the crew")) if named else None
    try:
        crew = crew_of(options, (await read_project(folder, "HEAD")).crew)
        return await _hired(folder, crew) if "coder" in crew.members else None
    except SystemExit:
        print("pointsman: `pointsman up --no-crew` starts without workers", file=sys.stderr)
        raise


async def _hired(folder: Path, crew: Crew) -> ResidentCrew:
    """The crew with its worker, once every agent's program was found."""
    first, *others = crew.specs()
    first = replace(first, name=f"{socket.gethostname().split('.')[0]}-{NAME}")
    worker = worker_for(await workspace_for([folder]), first, *others)
    return ResidentCrew(folder, await repository_id(folder), crew, worker)
