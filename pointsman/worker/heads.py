"""Where the branches of a repository are: runs that name a branch start from there."""

from collections.abc import Sequence
from pathlib import Path

from pointsman._shared.git import GitFailed, text
from pointsman.api.orchestrator.v1.agent_pb2 import BranchHead

OURS = "pointsman/"
"""Branches of deliveries: nothing starts from them."""
USUAL = ("main", "master", "trunk", "develop")
MAX_BRANCH = 256


async def branch_heads(folder: Path, limit: int) -> Sequence[BranchHead]:
    """The heads of the branches, those that work usually starts from first, then the latest ones."""
    try:
        listed = await text(
            folder,
            "for-each-ref",
            "--sort=-committerdate",
            "--format=%(HEAD)%(objectname) %(refname:short)",
            "refs/heads",
        )
    except (GitFailed, OSError):  # a poll is worth more than a head
        return ()
    lines = sorted((line for line in listed.splitlines() if line), key=_rank)
    heads = (line.lstrip("* ").split(" ", 1) for line in lines)
    own = [BranchHead(branch=name, commit=commit) for commit, name in heads if _can_be_named(name)]
    return own[:limit]


def _can_be_named(branch: str) -> bool:
    return len(branch) <= MAX_BRANCH and not branch.startswith(OURS)


def _rank(line: str) -> int:
    """The branch that is checked out, then those with usual names, then the others in the order of git."""
    if line.startswith("*"):
        return 0
    return 1 if line.rpartition(" ")[2] in USUAL else 2
