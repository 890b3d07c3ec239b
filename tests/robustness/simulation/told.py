"""What the actors were told, and will hold the services to."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Told:
    """Everything that was promised to somebody."""

    acknowledged: list[tuple[str, str]] = field(default_factory=list)
    """Request ids of mutations that were answered, with the run they were for."""
    kept: list[tuple[str, str]] = field(default_factory=list)
    """Request ids of mutations that another service has answered, with its context."""
    claimed: list[tuple[str, int]] = field(default_factory=list)
    """Tasks that were handed out, with their attempt."""
    runs: dict[str, str] = field(default_factory=dict)
    """The run that each Submit was answered with, by its request id."""
    taken: list[tuple[str, int, str]] = field(default_factory=list)
    """Results that were accepted: assignment, epoch, agent."""
    stolen: list[tuple[str, str]] = field(default_factory=list)
    """Calls that were taken from somebody who knew a lease's assignment, epoch and agent, but not its secret."""
    refused: int = 0
