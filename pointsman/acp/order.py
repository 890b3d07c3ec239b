"""What our client is started with: the places of the assignment, the policy, and where answers of people appear."""

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Order:
    """One session with one prompt."""

    places: tuple[str, ...]
    """Where files may be asked for; the first is the working tree."""
    answers: str = ""
    """A folder that the agent cannot write; each answer of a person is a file with the name of the request's key."""
    ask_before: tuple[str, ...] = ()
    """Kinds of tool calls that a person is asked about, wherever they are."""
    session: str = ""
    """The session to go on with, where the agent can; empty for a new one."""

    def line(self) -> str:
        """As an argument."""
        return json.dumps(asdict(self))


def read_order(line: str) -> Order:
    """The order of an argument."""
    found: dict[str, Any] = json.loads(line)
    return Order(**{**found, "places": tuple(found["places"]), "ask_before": tuple(found["ask_before"])})
