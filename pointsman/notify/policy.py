"""When a notice is sent: quiet hours, digests, and a second receiver for what stays unanswered."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pointsman._shared.hours import Hours


@dataclass(frozen=True, slots=True)
class Policy:
    """When questions are notified; by default each at once."""

    quiet: Hours | None = None
    """In the machine's time zone."""
    digest_minutes: int = 0
    """How long questions are gathered for one notice; 0 sends each by itself."""
    escalate_minutes: int = 0
    """After how long without an answer the second receiver is notified; 0 for never."""

    def due(self, asked: datetime) -> datetime:
        """When a question is notified."""
        gathered = asked + timedelta(minutes=self.digest_minutes)
        return self.quiet.ends_after(gathered) if self.quiet else gathered
