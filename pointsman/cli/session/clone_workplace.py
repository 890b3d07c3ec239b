"""The clone that `pointsman mcp` was started in: orders name it, deliveries become its branches."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.git import GitFailed, git, text
from pointsman.cli.session.delivery_branch import NotDelivered, put_on_branch
from pointsman.cli.session.repository import with_repository
from pointsman.client import Client, Order
from pointsman.mcp.workplace import Unusable
from pointsman.project import InvalidProjectFile
from pointsman.worker.base_project import project_at


@dataclass(frozen=True, slots=True)
class CloneWorkplace:
    """A git repository of this machine."""

    folder: Path

    async def ordered(self, order: Order) -> tuple[Order, list[str]]:
        """The order with the repository, its budget and its proof; a project file with problems is refused."""
        notes: list[str] = []
        try:
            await project_at(self.folder, await text(self.folder, "rev-parse", "HEAD"))
            return await with_repository(order, self.folder, notes.append, include_changes=False), notes
        except (InvalidProjectFile, GitFailed) as error:
            raise Unusable(f"the repository {self.folder}: {error}") from None

    async def deliver(self, client: Client, run_id: str, branch: str) -> str:
        """Put the accepted work on a branch; an existing one must be there already."""
        try:
            return await put_on_branch(client, run_id, self.folder, branch)
        except (NotDelivered, GitFailed) as error:
            raise Unusable(str(error)) from None

    async def diff(self, client: Client, run_id: str) -> str:
        """The accepted work over the commit it started from, made in a scratch repository that borrows our objects."""
        run = await client.runs.get(run_id)
        try:
            objects = await text(self.folder, "rev-parse", "--path-format=absolute", "--git-path", "objects")
            with tempfile.TemporaryDirectory() as scratch:
                place = Path(scratch)
                await git(place, "init", "-q", "--bare")
                (place / "objects" / "info" / "alternates").write_text(f"{objects}\n")
                await put_on_branch(client, run_id, place, "accepted")
                return await text(place, "diff", "--no-color", "--no-ext-diff", run.repository.base_commit, "accepted")
        except (NotDelivered, GitFailed) as error:
            raise Unusable(f"{error}; `deliver` in the repository of the run shows it") from None
