"""Which places of the machine a project file may show: it comes with a repository, whose author is not the user."""

from collections.abc import Sequence
from pathlib import Path

from pointsman.project.model import WorkspaceSection
from pointsman.project.setup_run import SetupFailed
from pointsman.sandbox.visibility import PRIVATE

STORES = (".local/share", ".local/state")
"""Folders of the home in which tools keep caches beside secrets: a folder of them may be shown, not all."""


def require_harmless(workspace: WorkspaceSection, hidden: Sequence[Path]) -> None:
    """Refuses a project file that shows credentials, the data directory, the user's clone or a whole home folder."""
    for key, names in (("read", workspace.read), ("cache", workspace.cache)):
        for name in names:
            if why := _harm(Path(name).expanduser(), hidden):
                raise SetupFailed(
                    f"[workspace] {key} names {name}, which {why}; a project file cannot show it. Take it out of "
                    "pointsman.toml, or start agents with --read if you want them to see it"
                )


def _harm(place: Path, hidden: Sequence[Path]) -> str:
    for path in {place, place.resolve()}:
        if any(path.is_relative_to(private) for private in hidden):
            return "is in the data directory or your clone"
        if Path.home().is_relative_to(path):
            return "holds your whole home folder"
        if any(_is_in(path, Path.home() / name, whole=name in STORES) for name in PRIVATE):
            return "is a known place of secrets"
    return ""


def _is_in(path: Path, private: Path, *, whole: bool) -> bool:
    return path == private if whole else path.is_relative_to(private)
