"""What the journal says about permissions that agents ask for; the answer is that to the run's question."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PermissionRequested:
    """An agent at work asks for a permission that its policy does not decide."""

    permission_id: str
    assignment_id: str
    text: str
