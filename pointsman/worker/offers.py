"""What a worker polls for: its repositories, with what people should know of them, and the runs that it works for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.project import InvalidProjectFile
from pointsman.worker.base_project import project_at
from pointsman.worker.git import GitFailed, text
from pointsman.worker.heads import MAX_BRANCH, branch_heads
from pointsman.worker.roles import Billing

REFRESH_SECONDS = 10.0
MAX_NAME, MAX_COMMAND, MAX_COMMANDS, MAX_OFFERS, MAX_BRANCHES = 128, 512, 16, 64, 64
Offers = Callable[[], Awaitable[Sequence[pb.OfferedRepository]]]


async def no_offers() -> Sequence[pb.OfferedRepository]:
    """Nothing to say about any repository."""
    return ()


@dataclass(frozen=True, slots=True)
class Reach:
    """What a worker can be given."""

    repository_ids: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    """The runs that it works for; none means every run whose work is not reserved."""
    first_run_ids: tuple[str, ...] = ()
    """The runs whose work it takes before that of others."""
    offers: Offers = no_offers

    async def wanted(self, capability: assignments.Capability.ValueType, billing: Billing) -> pb.Wanted:
        """What an agent of the worker asks for; only a verifier for all runs says something about repositories."""
        says = capability == assignments.CAPABILITY_VERIFY and not self.run_ids
        return pb.Wanted(
            capabilities=[capability],
            repository_ids=self.repository_ids,
            max_leases=1,
            run_ids=self.run_ids,
            first_run_ids=self.first_run_ids,
            repositories=await self.offers() if says else (),
            account=billing.account,
            instead_of=billing.instead_of,
        )


class CheckedOut:
    """The users' repositories of a worker, as they are checked out; looked at again after some seconds."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = dict(folders)
        self._found: tuple[pb.OfferedRepository, ...] = ()
        self._looked_at = float("-inf")

    async def offers(self) -> Sequence[pb.OfferedRepository]:
        """Name, head, proof and branches of each, which share the room of a poll; one that cannot be read is left out."""
        now = asyncio.get_running_loop().time()
        if now - self._looked_at >= REFRESH_SECONDS:
            self._looked_at = now
            known = list(self._folders.items())[:MAX_OFFERS]
            share = MAX_BRANCHES // max(1, len(known))
            looked = [await _offer(name, folder, share) for name, folder in known]
            self._found = tuple(one for one in looked if one is not None)
        return self._found


async def _offer(repository_id: str, folder: Path, share: int) -> pb.OfferedRepository | None:
    try:
        head = await text(folder, "rev-parse", "HEAD")
        branch = await text(folder, "branch", "--show-current")
        commands = await _proof(folder, head)
    except (GitFailed, OSError):
        return None
    return pb.OfferedRepository(
        id=repository_id,
        name=folder.name[:MAX_NAME],
        branch=branch if len(branch) <= MAX_BRANCH else "",
        head=head,
        verify=commands,
        branches=await branch_heads(folder, share),
    )


async def _proof(folder: Path, head: str) -> Sequence[str]:
    """The commands that prove work there; none where its project file is broken: runs on it are refused with the cause."""
    try:
        project = await project_at(folder, head)
    except InvalidProjectFile:
        return ()
    commands = [command.text for command in project.proof.verify]
    is_short = len(commands) <= MAX_COMMANDS and all(len(one) <= MAX_COMMAND for one in commands)
    return commands if is_short else ()
