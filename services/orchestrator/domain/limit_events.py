"""What the journal says about limits of models' providers: who rests until when, and who goes on with the work."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class AccountPaused:
    """A provider refused an agent because of a limit: its account rests, and the work went back without counting."""

    assignment_id: str
    agent_id: str
    account: str
    until: datetime
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkTakenUp:
    """An agent goes on with work that went back because of a limit."""

    assignment_id: str
    agent_id: str
    account: str
    """Its own account; where it is the one that rested, the limit is over."""
    rested: str
