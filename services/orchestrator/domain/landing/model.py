"""An entry and its parts, as values."""

import hashlib
from dataclasses import dataclass
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

    @property
    def ended(self) -> bool:
        """Whether it is in a terminal state."""
        return self.status in TERMINAL

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


def entry_id_for(project: str, run_id: str, terms: Terms, request_id: str) -> str:
    """The same request names the same entry, however often it is sent."""
    key = "\0".join((project, run_id, terms.queue_id(project), request_id))
    return f"entry_{hashlib.sha256(key.encode()).hexdigest()[:26]}"
