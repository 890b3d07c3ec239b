"""Which agent gets which assignment of those that are available."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pointsman.services.orchestrator.store.lease_quota import Room, has_room
from pointsman.services.orchestrator.store.others import Others
from pointsman.services.orchestrator.store.polling import Waiter, is_first_for


class Offer(NamedTuple):
    """What has to be known besides an assignment to give it to an agent."""

    others: Others
    room: Room
    lost: list[Any]
    """Takes the leases that ran out and are given to another agent."""

    def suits(self, waiter: Waiter, row: Any) -> bool:
        """Whether the assignment is for this agent, and its principal may hold another."""
        return has_room(self.room, waiter.wanted.holder) and waiter.fits(row, self.others)

    def takers(self, rows: Sequence[Any], hungry: Sequence[Waiter]) -> Iterator[tuple[Any, Waiter]]:
        """Each assignment with the first agent that it fits; the work of runs that agents work for first comes first."""
        left = list(rows)
        for first in (True, False) if any(waiter.wanted.first_run_ids for waiter in hungry) else (False,):
            rows, left = left, []
            for row in rows:
                able = (waiter for waiter in hungry if not first or is_first_for(row, waiter))
                taker = next((waiter for waiter in able if self.suits(waiter, row)), None)
                if taker is not None:
                    yield row, taker
                elif first:
                    left.append(row)
