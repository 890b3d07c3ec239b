"""Names of the landing: states, events, findings and answers; the strings are stored and never change."""

from enum import StrEnum


class EntryState(StrEnum):
    """Where an entry of a queue is."""

    QUEUED = "QUEUED"
    PROVING = "PROVING"
    LANDING = "LANDING"
    """Proven, and being pushed or proposed; the candidate is recorded before anything leaves the machine."""
    PROPOSED = "PROPOSED"
    """A pull request is open."""
    WAITING = "WAITING"
    """A linked run works on what was found."""
    ASKED = "ASKED"
    LANDED = "LANDED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"


TERMINAL = frozenset({EntryState.LANDED, EntryState.REJECTED, EntryState.CANCELLED})
LIVE = tuple(state for state in EntryState if state not in TERMINAL)


class EntryEvent(StrEnum):
    """What happens to an entry."""

    ENQUEUED = "enqueued"
    TAKEN = "taken"
    PROVEN = "proven"
    LANDED = "landed"
    MERGED = "merged"
    """Somebody else has brought the work into the target."""
    BASE_MOVED = "base_moved"
    SPLIT = "split"
    """Its work is that of several tasks, of which it is the lowest layer now."""
    RESTACKED = "restacked"
    """The layer below it is at another commit, or has landed."""
    CONFLICTED = "conflicted"
    PROOF_FAILED = "proof_failed"
    PROOF_ASKS = "proof_asks"
    BLOCKED = "blocked"
    """The integrator may not or cannot go on: a branch that is checked out, a remote that refuses."""
    HELD_UP = "held_up"
    """Something that may pass by itself is in the way: a forge that does not answer, a limit, a token that ran out."""
    PROPOSED = "proposed"
    CHECKS_FAILED = "checks_failed"
    CHANGES_REQUESTED = "changes_requested"
    CLOSED = "closed"
    ORPHANED = "orphaned"
    """A person has ended the layer below it."""
    LINKED = "linked"
    RESOLVED = "resolved"
    LINK_FAILED = "link_failed"
    RETRIED = "retried"
    APPROVED = "approved"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


class Way(StrEnum):
    """How work gets into the target."""

    FAST_FORWARD = "FAST_FORWARD"
    PULL_REQUEST = "PULL_REQUEST"


class EntryReply(StrEnum):
    """What a person answers to an entry that asks."""

    RETRY = "RETRY"
    APPROVE = "APPROVE"
    """What the proof asks is right."""
    REJECT = "REJECT"


SETBACKS = (
    EntryEvent.CONFLICTED,
    EntryEvent.PROOF_FAILED,
    EntryEvent.CHECKS_FAILED,
    EntryEvent.CHANGES_REQUESTED,
)
"""Findings that a linked run can do something about."""
QUESTIONS = (EntryEvent.PROOF_ASKS, EntryEvent.BLOCKED, EntryEvent.CLOSED, EntryEvent.ORPHANED)
"""Findings that only a person can do something about."""
