"""How the runs of a stream's transitions stand: each is read once for all transitions that it is ahead of."""

from collections.abc import Sequence

from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.engine.journal import Transition
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.waiting import attention
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.wire import encode

MOST_RUNS = 1000


class RunLines:
    """The lines of one stream."""

    def __init__(self, store: OrchestratorStore, project: str, *, are_wanted: bool) -> None:
        self._store, self._project, self._are_wanted = store, project, are_wanted
        self._sent: dict[str, int] = {}
        """Up to which seq each run was sent, the latest last."""

    async def of(self, rows: Sequence[Transition]) -> list[runs.Run]:
        """The runs of some transitions as they are now, without those that were sent and are ahead of them."""
        if not self._are_wanted:
            return []
        found = [await self._line(row) for row in rows if row.kind == MACHINE.kind]
        return [line for line in found if line is not None]

    async def _line(self, row: Transition) -> runs.Run | None:
        if row.seq <= self._sent.get(row.entity_id, 0):
            return None
        try:
            view = await self._store.view(self._project, row.entity_id)
        except Refusal:  # removed by retention meanwhile
            return None
        self._sent.pop(row.entity_id, None)
        self._sent[row.entity_id] = view.seq
        if len(self._sent) > MOST_RUNS:
            del self._sent[next(iter(self._sent))]
        return encode.runs.line(encode.runs.run(view), view.at_work, attention(view.run, view.at_work), cut=True)
