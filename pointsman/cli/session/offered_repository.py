"""A repository that a worker elsewhere offers by its name, for a command that has no clone of it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.options.usage import fail_usage, split_command
from pointsman.client import Client, Order


def offered_name(repo: Path | None) -> str:
    """The name that stands where a folder could: one word, and nothing of that name is here."""
    if repo is None or len(repo.parts) != 1 or repo.exists() or str(repo) in ("", ".", ".."):
        return ""
    return str(repo)


async def with_offer(client: Client, order: Order, name: str, say: Callable[[str], None]) -> Order:
    """The order on the commit that the worker has checked out, with the proof of its project file."""
    if not name:
        return order
    try:
        offer = await client.agents.offered(name)
    except LookupError as error:
        fail_usage(f"{name} is no folder here, and {error}")
    say(f"repository: {offer.name}, {offer.branch or 'no branch'} at {offer.head[:12]}, of a worker that is there")
    proof = order.verify_commands or [split_command(command, "[proof] verify") for command in offer.verify]
    return replace(order, repository=Repository(id=offer.id, base_commit=offer.head), verify_commands=proof)
