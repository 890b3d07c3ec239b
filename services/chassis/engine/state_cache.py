"""States that were written just now and need not be read again."""

from collections import OrderedDict
from typing import Generic, TypeVar

State = TypeVar("State")
MAX_ENTRIES = 256


class StateCache(Generic[State]):
    """The states of entities that moved last, by the digest of their journals: the same journal folds to the same state."""

    def __init__(self) -> None:
        self._states: OrderedDict[str, tuple[str, State]] = OrderedDict()

    def put(self, entity_id: str, digest: str, state: State) -> None:
        """Remember a state that nobody changes any more."""
        self._states[entity_id] = (digest, state)
        self._states.move_to_end(entity_id)
        if len(self._states) > MAX_ENTRIES:
            self._states.popitem(last=False)

    def get(self, entity_id: str, digest: str) -> State | None:
        """The state of an entity whose journal has this digest, if it is remembered."""
        known = self._states.get(entity_id)
        return known[1] if known is not None and known[0] == digest else None
