"""The notifier of `pointsman up`: [notify] of the repository here says who is notified of every question."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from pointsman.cli.session.control_plane import announced_plane
from pointsman.cli.session.notifying import Notifier, notifier_for
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.usable_repository import find_repository, has_usable_repository
from pointsman.client import Terms
from pointsman.project.model import NotifySection
from pointsman.services.chassis.core.supervision import Loops

PATIENCE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class ResidentNotifier:
    """Who is notified, as the repository's project file says."""

    section: NotifySection
    project: str

    @property
    def line(self) -> str:
        """Who is notified, for people; the rest of an address may be a secret."""
        host = urlsplit(self.section.webhook or self.section.slack or self.section.ntfy).netloc.rpartition("@")[2]
        return f"questions of runs are sent to {host} ([notify] of pointsman.toml; --no-notify sends none)"

    @asynccontextmanager
    async def working(self, lock: Path, console: str) -> AsyncIterator[None]:
        """Notifies during the block; what fails is started again, at the place where it stood."""
        section = self.section if self.section.console else replace(self.section, console=console)
        notifier: Notifier = notifier_for(section, (), self.project, with_answers=False)
        async with announced_plane(lock) as plane:
            client = plane.client(Terms(project=self.project, patience_seconds=PATIENCE_SECONDS))
            loops = Loops()
            loops.start("notices", lambda: notifier.follow(client))
            try:
                yield
            finally:
                await loops.stop()


async def resident_notifier(repo: Path | None, project: str) -> ResidentNotifier | None:
    """The notifier of the named repository, else of the one here; None where its file names no receiver."""
    folder = await find_repository(repo) if repo or await has_usable_repository() else None
    section = (await read_project(folder, "HEAD")).notify if folder is not None else NotifySection()
    named = section.webhook or section.slack or section.ntfy
    return ResidentNotifier(section, project) if named else None
