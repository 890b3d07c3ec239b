"""The one way to change state: commands of one kind of entity, decided and committed in batches by the store's writer."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, bindparam, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.crash import CrashPoint, reach
from pointsman.services.chassis.core.errors import not_found
from pointsman.services.chassis.core.machine import Command, Event, Machine
from pointsman.services.chassis.engine.batch import Batch, Parts, StoreParts
from pointsman.services.chassis.engine.changes import Children, Premises, Submission
from pointsman.services.chassis.engine.deliveries import Delivery
from pointsman.services.chassis.storage.dialect import PreparedStatement
from pointsman.services.chassis.storage.statements import EntityRow, entity_columns
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.storage.writer import Executed
from pointsman.services.chassis.telemetry.context import current_transition

State = TypeVar("State")
_NO_ROW = ("", "", "", 0, 0, "", "", 0, 0, "")


class Ledger(Generic[State]):
    """Submits commands to the store's writer, and executes them there, a batch in each transaction."""

    def __init__(
        self,
        store: Store,
        machine: Machine[State],
        children: Children[State] | None = None,
        measure: Callable[[Event], None] | None = None,
        premises: Premises[State] | None = None,
    ) -> None:
        self.store = store
        self.machine = machine
        self.shared: StoreParts = store.ledgers[0].shared if store.ledgers else StoreParts(store)
        self._parts: Parts[State] = Parts(store, self.shared, machine, children, measure, premises)
        entities = store.tables.entities
        found = select(*entity_columns(store)).where(entities.c.entity_id == bindparam("entity_id"))
        self._find_one = PreparedStatement(store.database, found)
        store.ledgers.append(self)

    async def submit(self, caller: Caller, command: Command, acknowledges: Delivery | None = None) -> Any:
        """Decide and commit a command; the first answer if its request_id was used before."""
        item = Submission(command, caller, acknowledges)
        answer = await self.store.writer.write(self, item)
        if item.transition is not None:
            current_transition.set(item.transition)
        return answer

    def execute(self, connection: Connection, items: Sequence[Submission]) -> Executed:
        """Load, decide and write a batch in the transaction of the connection."""
        batch = Batch(self._parts, items, self.store.database.clock.now())
        batch.load(connection)
        reach(CrashPoint.BATCH_LOADED)
        outcomes = batch.decide()
        reach(CrashPoint.BATCH_DECIDED)
        batch.write(connection)
        return Executed(outcomes, batch.after_commit)

    def load(self, connection: Connection, project: str, entity_id: str) -> State:
        """The state without its children, for reading; refused as not found where there is none in the project."""
        found = self._find_one.fetch(connection, {"entity_id": entity_id})
        row = EntityRow._make(found[0] if found else _NO_ROW)
        if row.kind != self.machine.kind or row.project != project:
            raise not_found(self.machine.kind, entity_id)
        return self._parts.state_of(row)

    def body_of(self, state: State) -> Any:
        """The part of the state that is stored in the entity's row."""
        return self._parts.body_of(state)
