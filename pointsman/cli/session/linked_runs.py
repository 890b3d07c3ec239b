"""Works on the linked runs of an entry with a crew of this command."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.cli.render.run_progress import View
from pointsman.cli.session.crew import Crew
from pointsman.cli.session.follow import follow
from pointsman.cli.session.workers import worker_for, worker_running, workspace_for
from pointsman.client import Client

OVER = (pb.ENTRY_STATE_LANDED, pb.ENTRY_STATE_REJECTED, pb.ENTRY_STATE_CANCELLED, pb.ENTRY_STATE_ASKED)
"""States of an entry that is merged, ended by a person, or asks one."""


@dataclass(frozen=True, slots=True)
class LinkCrew:
    """A crew for linked runs, how they are shown, and the states of the entry at which it is done."""

    folder: Path
    crew: Crew
    view: Callable[[], View]
    until: tuple[pb.EntryState.ValueType, ...] = OVER
    _known: set[str] = field(default_factory=set)

    async def work_on(self, client: Client, entry: pb.Entry) -> bool:
        """Works on the entry's open linked run to its end; whether it came to one, or asks a person instead."""
        run_id = open_link(entry)
        if run_id in self._known:
            return True
        self._known.add(run_id)
        return not (await self._followed(client, run_id)).HasField("question")

    async def _followed(self, client: Client, run_id: str) -> Run:
        worker = worker_for(await workspace_for([self.folder]), *self.crew.specs(), run_id=run_id)
        async with worker_running(client, worker):
            return await follow(client, run_id, self.view())


def open_link(entry: pb.Entry) -> str:
    """The linked run that an entry waits for; empty where it waits for none, or for one that is not there yet."""
    return entry.links[-1].run_id if entry.links and not entry.links[-1].outcome else ""
