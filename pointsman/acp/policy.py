"""What the policy says to an agent that asks for a permission, before any person is asked."""

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from acp import schema

CHANGES = frozenset({"edit", "delete", "move"})
MAX_TITLE = 1000
MAX_PLACES = 16


class Policy(StrEnum):
    """What is done about a request."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an agent wants to do, as it says itself."""

    kind: str
    title: str
    places: tuple[str, ...]
    key: str
    """A digest of all that it said; the same request has the same one."""


def wanted(call: schema.ToolCallUpdate, begun: schema.ToolCallStart | None) -> Wanted:
    """A request; what it leaves out was said when the call of the tool began."""
    kind = str(call.kind or (begun and begun.kind) or "other")
    title = call.title or (begun.title if begun else "") or call.tool_call_id
    named = call.locations or (begun.locations if begun else None) or ()
    given: Any = call.raw_input if call.raw_input is not None else (begun.raw_input if begun else None)
    places = tuple(location.path for location in named)
    said = json.dumps([kind, title, places, given], sort_keys=True, default=str)
    detail = "" if given is None else f" {json.dumps(given, default=str)}"
    return Wanted(kind, f"{title}{detail}"[:MAX_TITLE], places[:MAX_PLACES], hashlib.sha256(said.encode()).hexdigest())


def judge(request: Wanted, ask_before: Collection[str], is_within: Callable[[Path], bool]) -> Policy:
    """Within the assignment's places everything is allowed that nobody wants to be asked about.

    Outside of them nothing can be changed, whatever anybody says: the sandbox does not let it. Other wishes are asked about.
    """
    outside = not all(is_within(Path(place)) for place in request.places)
    if outside and request.kind in CHANGES:
        return Policy.DENY
    return Policy.ASK if outside or request.kind in ask_before else Policy.ALLOW
