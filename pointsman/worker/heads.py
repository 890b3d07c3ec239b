"""Where the branches of a worker's repositories are: runs that name a branch start from there."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pointsman._shared.git import GitFailed, text
from pointsman.api.orchestrator.v1.agent_pb2 import BranchHead

MAX_HEADS = 64
OURS = "pointsman/"
"""Branches of deliveries: nothing starts from them."""
USUAL = ("main", "master", "trunk", "develop")

ReadHeads = Callable[[], Awaitable[Sequence[BranchHead]]]


async def no_heads() -> Sequence[BranchHead]:
    """Nothing: most roles are not asked."""
    return ()


async def branch_heads(repositories: Mapping[str, Path]) -> Sequence[BranchHead]:
    """The heads of the repositories' branches, those that work usually starts from first, then the latest ones."""
    if not repositories:
        return ()
    share = max(1, MAX_HEADS // len(repositories))
    found = [await _heads_of(name, folder, share) for name, folder in repositories.items()]
    return [head for heads in found for head in heads][:MAX_HEADS]


async def _heads_of(repository_id: str, folder: Path, share: int) -> Iterable[BranchHead]:
    """None where git does not say: a poll is worth more than a head."""
    try:
        listed = await text(
            folder,
            "for-each-ref",
            "--sort=-committerdate",
            "--format=%(HEAD)%(objectname) %(refname:short)",
            "refs/heads",
        )
    except (GitFailed, OSError):
        return ()
    lines = sorted((line for line in listed.splitlines() if line), key=_rank)
    heads = (line.lstrip("* ").split(" ", 1) for line in lines)
    own = (BranchHead(repository_id=repository_id, branch=name, commit=commit) for commit, name in heads)
    return [head for head in own if not head.branch.startswith(OURS)][:share]


def _rank(line: str) -> int:
    """The branch that is checked out, then those with usual names, then the others in the order of git."""
    if line.startswith("*"):
        return 0
    return 1 if line.rpartition(" ")[2] in USUAL else 2
