"""An entry and its parts, as values."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

from pointsman.services.orchestrator.domain.landing.enums import TERMINAL, EntryEvent, EntryState, Way

MAX_LINKS = 2
"""Linked runs of one entry for the crew of its run; after them a resolver, if one plays, then a person."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Where the work is to go, and how."""

    repository_id: str
    target: str
    remote: str = ""
    """A remote of the integrator's repository; empty for the branch of that repository itself."""
    way: Way = Way.FAST_FORWARD
    squash: bool = False
    priority: int = 0
    title: str = ""
    max_tokens: int = 0
    """What all linked runs together may spend; 0 means no limit."""
    max_cost_micros: int = 0
    resolver: bool = False
    """Whether somebody plays the resolver: one more linked run is for it."""
    stack: bool = False
    """Whether each task of the run becomes an entry of its own, on the one below."""

    def queue_id(self, project: str) -> str:
        """The queue that an entry with these terms is in."""
        key = "\0".join((project, self.repository_id, self.remote, self.target))
        return f"queue_{hashlib.sha256(key.encode()).hexdigest()[:26]}"


@dataclass(frozen=True, slots=True)
class Work:
    """Accepted work of a run: the commits from its base to its accepted commit, and their bundle."""

    run_id: str
    base_commit: str
    commit: str
    bundle_sha256: str = ""
    bundle_bytes: int = 0
    floor: str = ""
    """The commit that its own changes start from, where that is not its base."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One task's part of a stack."""

    task_id: str
    title: str
    commit: str
    """It holds this layer and all below it."""


@dataclass(frozen=True, slots=True)
class Below:
    """What a layer goes onto: the commit and the branch of the layer below, or, where both are empty, the target."""

    commit: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """The place of an entry in a stack."""

    number: int
    """1 is the lowest."""
    layers: tuple[Layer, ...]
    whole: Work
    """All of the run's work."""
    on: Below = Below()
    below_id: str = ""
    """The entry of the layer below."""

    @property
    def is_highest(self) -> bool:
        """Whether there is no layer above it."""
        return self.number >= len(self.layers)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was proven: the work over a tip of the target, alone or behind other entries of a batch."""

    commit: str
    """The commit with this entry's work."""
    tip: str
    """The commit whose tree was proven; all of the batch lands with it."""
    tree: str
    base: str
    """The tip of the target that it was proven on."""
    grade: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Why an entry does not go on as it is."""

    kind: EntryEvent
    text: str
    files: tuple[str, ...] = ()
    other_run_ids: tuple[str, ...] = ()
    """Runs whose landed work it meets."""
    base: str = ""
    """The commit that work on it starts from."""
    url: str = ""
    untrusted: bool = False
    """Whether the text comes from a forge."""
    floor: str = ""
    """The commit that the work had been put onto."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pull request."""

    number: int
    url: str
    branch: str
    head: str


@dataclass(frozen=True, slots=True)
class Link:
    """A linked run: what it was started for, and how it ended."""

    run_id: str
    kind: EntryEvent
    outcome: str = ""
    tokens: int = 0
    cost_micros: int = 0
    resolver: bool = False
    """Whether it is a resolver's."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One run's work on its way into a branch."""

    entry_id: str
    status: EntryState
    queue_id: str
    terms: Terms
    run_id: str
    work: Work
    created_at: datetime
    epoch: int = 0
    """The queue's lease under which it was taken last."""
    agent_id: str = ""
    principal: str = ""
    rounds: int = 0
    """How often it was taken."""
    candidate: Candidate | None = None
    finding: Finding | None = None
    """The last one; of a live entry that waits or asks it is the reason."""
    proposal: Proposal | None = None
    links: tuple[Link, ...] = ()
    approved: bool = False
    """Whether a person has approved what the proof of this work asks."""
    landed_commit: str = ""
    end_reason: str = ""
    stack: Stack | None = None
    held_up: str = ""
    """What is in the way for now, in the integrator's words."""

    @property
    def above_id(self) -> str:
        """The entry of the layer above; empty for the highest, and outside of a stack."""
        return "" if self.stack is None or self.stack.is_highest else layer_id_above(self.entry_id)

    @property
    def ended(self) -> bool:
        """Whether it is in a terminal state."""
        return self.status in TERMINAL

    @property
    def is_blocked(self) -> bool:
        """Whether the integrator could not go on with it."""
        return self.finding is not None and self.finding.kind is EntryEvent.BLOCKED

    @property
    def tokens_left(self) -> int:
        """Tokens that linked runs may still spend; only of an entry with such a limit."""
        return self.terms.max_tokens - sum(link.tokens for link in self.links)

    @property
    def cost_left(self) -> int:
        """Cost that linked runs may still spend, in millionths; only of an entry with such a limit."""
        return self.terms.max_cost_micros - sum(link.cost_micros for link in self.links)

    @property
    def spent(self) -> bool:
        """Whether its linked runs have used up what they may spend."""
        return bool(self.terms.max_tokens and self.tokens_left <= 0) or bool(
            self.terms.max_cost_micros and self.cost_left <= 0
        )

    @property
    def next_is_resolvers(self) -> bool:
        """Whether the crew has had its linked runs: the next one is the resolver's."""
        return len(self.links) >= MAX_LINKS

    @property
    def has_links_left(self) -> bool:
        """Whether one more run may be started for it."""
        return len(self.links) < MAX_LINKS + self.terms.resolver and not self.spent

    @property
    def open_link(self) -> Link | None:
        """The linked run that it waits for."""
        return self.links[-1] if self.links and not self.links[-1].outcome else None


def entry_id_for(scope: str, run_id: str, queue_id: str, request_id: str) -> str:
    """The same request names the same entry, however often its caller sends it."""
    key = "\0".join((scope, run_id, queue_id, request_id))
    return f"entry_{hashlib.sha256(key.encode()).hexdigest()[:26]}"


def layer_id_above(entry_id: str) -> str:
    """The entry of the layer above another one: the same name however often it is made."""
    return f"entry_{hashlib.sha256(f'{entry_id}/above'.encode()).hexdigest()[:26]}"


def split(entry: Entry, layers: tuple[Layer, ...]) -> Entry:
    """An entry whose work is of several tasks as the lowest of their layers; each may spend its part of the budget."""
    terms, size = entry.terms, len(layers)
    tokens, cost = (max(1, limit // size) if limit else 0 for limit in (terms.max_tokens, terms.max_cost_micros))
    title = layers[0].title or terms.title
    return replace(
        entry,
        terms=replace(terms, title=title, max_tokens=tokens, max_cost_micros=cost),
        work=replace(entry.work, commit=layers[0].commit),
        stack=Stack(1, layers, entry.work),
    )
