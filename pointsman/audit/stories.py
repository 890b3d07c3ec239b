"""Stories: a run that does another one again goes on from a commit that was accepted in that one."""

from collections.abc import Iterator

from sqlalchemy import Connection, select

from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.engine.audit import History, Violation
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import TERMINAL, InternalEvent
from pointsman.services.orchestrator.domain.events import Submitted, WaveVerified
from pointsman.services.orchestrator.domain.origin import Origin
from pointsman.services.orchestrator.domain.run import Run

_TELLING = (str(InternalEvent.SUBMITTED), str(InternalEvent.WAVE_VERIFIED))


class StoryProof:
    """Compares a run with the one that it does again; one that retention has removed is believed."""

    def __init__(self, store: Store) -> None:
        self._entities = store.tables.entities
        self._journal = store.tables.journal

    def __call__(self, connection: Connection, history: History) -> Iterator[Violation]:
        """What is wrong with where a run comes from."""
        run: Run = history.state.run
        origin = run.order.origin
        if origin is None:
            return
        entities = self._entities.c
        earlier = select(entities.status, entities.project).where(entities.entity_id == origin.run_id)
        found = connection.execute(earlier).first()
        if found is None:
            return
        if found.project != run.order.project or found.status not in TERMINAL:
            yield history.violation("story", 1, f"it does {origin.run_id} again, which has not ended in its project")
        if origin.accepted_commit and origin.accepted_commit not in self._accepted(connection, origin):
            commit = origin.accepted_commit[:12]
            yield history.violation("story", 1, f"it goes on from {commit}, which {origin.run_id} never accepted")

    def _accepted(self, connection: Connection, origin: Origin) -> Iterator[str]:
        """The commits that a run accepted, and the one that it began with itself."""
        journal = self._journal.c
        statement = select(journal.event, journal.payload).where(
            journal.entity_id == origin.run_id, journal.event.in_(_TELLING)
        )
        for event, payload in connection.execute(statement):
            if event == InternalEvent.WAVE_VERIFIED:
                yield from_json(payload, WaveVerified).accepted_commit
            elif (before := from_json(payload, Submitted).order.origin) is not None:
                yield before.accepted_commit
