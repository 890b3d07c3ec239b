"""Forges: where pull requests live. What the integrator needs of one, and the values it gets back.

Everything that a forge says is untrusted text: it is shown and quoted, never obeyed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class ForgeAway(Exception):
    """The forge does not answer now; the same call may go better later."""

    def __init__(self, message: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ForgeRefused(Exception):
    """The forge refuses for good; the message says why, without any credential."""


class TokenRefused(ForgeRefused):
    """The forge does not take the token, or not any more."""


class CheckState(StrEnum):
    """How a check stands."""

    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Request:
    """A pull request as its forge shows it."""

    number: int
    url: str
    head: str
    body: str = ""
    is_open: bool = True
    merged_commit: str = ""
    conflicts: bool = False
    target: str = ""
    """The branch that it is to be merged into."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A pull request that is to be opened."""

    title: str
    body: str
    branch: str
    target: str


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a commit."""

    name: str
    state: CheckState
    url: str = ""
    job_id: int = 0
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """A review of a pull request."""

    author: str
    asks_for_changes: bool
    commit: str
    text: str
    url: str = ""


class Forge(Protocol):
    """A forge with one repository."""

    async def find(self, branch: str) -> Sequence[Request]:
        """The pull requests of a branch, whatever their state and target, newest first."""

    async def open(self, draft: Draft) -> Request:
        """Opens a pull request."""

    async def describe(self, number: int, draft: Draft) -> None:
        """Replaces title, body and target of a pull request."""

    async def request(self, number: int) -> Request:
        """A pull request as it is now."""

    async def checks(self, commit: str) -> Sequence[Check]:
        """The newest run of every check of a commit."""

    async def log_of(self, check: Check) -> str:
        """What a check printed; empty where nobody can read it."""

    async def reviews(self, number: int) -> Sequence[Review]:
        """The last review of every reviewer that says yes or no."""

    async def comments(self, number: int) -> Sequence[str]:
        """The texts of a pull request's comments."""

    async def comment(self, number: int, body: str) -> None:
        """Adds a comment."""
