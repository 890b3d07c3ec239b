"""The rules of a workflow's context and of who may take it up, in plain fields."""

from collections.abc import Mapping
from typing import Any

REMEMBERED = 10
WAITING = {"planned", "paused", "blocked", "failed"}


class Context:
    """How full the model's context is."""

    def __init__(self) -> None:
        self.tokens = 0
        self.limits = {"window_tokens": 200_000, "warning_threshold": 60, "danger_threshold": 80}
        self.history: list[tuple[str, int]] = []

    def takes(self, fields: Mapping[str, Any]) -> bool:
        """Whether the thresholds go together."""
        limits = {**self.limits, **fields}
        return bool(limits["warning_threshold"] <= limits["danger_threshold"])

    def change(self, fields: Mapping[str, Any]) -> None:
        """Set what is said."""
        self.limits |= {name: value for name, value in fields.items() if name in self.limits}

    def add(self, own_id: str, characters: int) -> None:
        """Characters more: four are a token, and what is begun counts."""
        self.reach(own_id, self.tokens + -(-characters // 4))

    def reach(self, own_id: str, tokens: int) -> None:
        """As many tokens in all."""
        self.history = [*self.history, (own_id, tokens - self.tokens)][-REMEMBERED:]
        self.tokens = tokens

    def percent(self) -> float:
        """Usage in percent of the window."""
        return 100 * self.tokens / self.limits["window_tokens"]

    def over(self, threshold: str) -> bool:
        """Whether usage is over a threshold."""
        return self.percent() > self.limits[f"{threshold}_threshold"]


class Standing:
    """Whose a workflow is, and whether it was given up."""

    def __init__(self) -> None:
        self.owner = ""
        self.cancelled = False
        self.last_owner = ""
        self.cancelled_by = ""
        self.intake = ""
        self.priority = 100

    def owned_by_another(self, fields: Mapping[str, Any]) -> bool:
        """Whether somebody else works on it."""
        wanted = fields.get("owner_run_id", "")
        return bool(wanted and self.owner and wanted != self.owner)

    def comes_late(self, fields: Mapping[str, Any]) -> bool:
        """Whether the run that gave it up asks for more."""
        wanted = fields.get("owner_run_id", "")
        return bool(self.cancelled and wanted and wanted == self.cancelled_by)

    def change(self, fields: Mapping[str, Any]) -> None:
        """Set what is said; what is asked for anew is given up no longer."""
        self.owner = fields.get("owner_run_id", self.owner)
        self.last_owner = self.owner or self.last_owner
        self.intake = fields.get("intake_text", self.intake)
        self.priority = fields.get("priority", self.priority)
        if fields.get("intake_text"):
            self.cancelled = False

    def cancel(self) -> None:
        """Nobody's any more, and not to be taken up."""
        if self.owner or not self.cancelled:
            self.cancelled_by = self.last_owner
        self.owner, self.cancelled = "", True

    def resumable(self, status: str) -> bool:
        """Whether a run could take it up."""
        worth = status in WAITING or (status == "idle" and bool(self.intake))
        return worth and not self.owner and not self.cancelled
