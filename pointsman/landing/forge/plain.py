"""A remote without a forge: the branch is pushed, and a person merges it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pointsman.landing.forge import Check, Draft, Request, Review


@dataclass(frozen=True, slots=True)
class PlainRemote:
    """A git remote; whether the work was merged is seen in the target itself."""

    address: str

    async def find(self, branch: str) -> Sequence[Request]:  # noqa: ARG002 - there are none
        """There are no pull requests."""
        return ()

    async def open(self, draft: Draft) -> Request:
        """The pushed branch stands for the request."""
        return Request(1, f"{self.address}#{draft.branch}", "")

    async def describe(self, number: int, draft: Draft) -> None:
        """Nothing can be described."""

    async def request(self, number: int) -> Request:
        """Open until the target holds the work."""
        return Request(number, self.address, "")

    async def checks(self, commit: str) -> Sequence[Check]:  # noqa: ARG002 - there are none
        """There are no checks."""
        return ()

    async def log_of(self, check: Check) -> str:
        """Nothing was printed."""
        return check.summary

    async def reviews(self, number: int) -> Sequence[Review]:  # noqa: ARG002 - there are none
        """There are no reviews."""
        return ()

    async def comments(self, number: int) -> Sequence[str]:  # noqa: ARG002 - there are none
        """There are no comments."""
        return ()

    async def comment(self, number: int, body: str) -> None:
        """Nobody reads comments."""
