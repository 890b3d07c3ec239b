"""Who calls a tool, and the repository at hand: a caller over HTTP has none."""

from dataclasses import dataclass
from typing import Protocol

from pointsman.client import Client, Order


class Unusable(Exception):
    """What was asked for cannot be done with the repository here; the message names the way out."""


class Workplace(Protocol):
    """The clone that a local server was started in."""

    async def ordered(self, order: Order) -> tuple[Order, list[str]]:
        """The order with the repository and its proof, and notes about both."""

    async def deliver(self, client: Client, run_id: str, branch: str) -> str:
        """Put the accepted work on a branch; returns what was done."""

    async def diff(self, client: Client, run_id: str) -> str:
        """The accepted work as a patch over its base."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A client that shows the caller's credentials, and the clone it sits in."""

    client: Client
    workplace: Workplace | None = None
