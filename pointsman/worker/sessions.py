"""Sessions of agents that outlive a lost lease: the next lease of the same assignment on this machine goes on with them.

What an agent left behind is not trusted: only its working tree and its home stay, only if no link in the home could lead
the worker elsewhere, and neither where the worker would write into the tree.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointsman._shared.files import atomic_write
from pointsman._shared.removal import remove_tree
from pointsman._shared.system_time import now_seconds
from pointsman.profiles import Profile
from pointsman.project import ProjectFile

SESSION = "session.json"
TREE, SCRATCH, HOME = "tree", "tmp", "home"
KEPT_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of one profile for one assignment."""

    assignment_id: str
    profile: Profile

    def is_left_in(self, place: Path) -> bool:
        """Whether a folder has a session to go on with."""
        return bool(self.left_in(place))

    def left_in(self, place: Path) -> str:
        """The session that was left in a folder; empty where it is of another assignment or agent, too old or unsafe."""
        found = _read(place)
        mine = (found.get("assignment_id"), found.get("profile")) == (self.assignment_id, self.profile.name)
        can = mine and _is_fresh(place) and (place / TREE).is_dir() and _is_safe(place / SCRATCH / HOME, self.profile)
        return str(found.get("id", "")) if can else ""

    def empty_but_session(self, place: Path) -> None:
        """Keep the tree and the home alone; everything else is made anew."""
        aside = place / HOME
        (place / SCRATCH / HOME).rename(aside)
        for entry in place.iterdir():
            if entry.name not in (TREE, HOME, SESSION):
                remove_tree(entry)
        (place / SCRATCH).mkdir()
        aside.rename(place / SCRATCH / HOME)

    def note(self, place: Path, event: Mapping[str, Any]) -> None:
        """Keep which session an agent is in, where it says that it can go on with it later."""
        if event.get("type") == "session" and event.get("again"):
            about = {"assignment_id": self.assignment_id, "profile": self.profile.name, "id": str(event.get("id", ""))}
            atomic_write(place / SESSION, json.dumps(about))


def is_resumable(place: Path) -> bool:
    """Whether anybody could go on with what is in a folder."""
    return bool(_read(place)) and _is_fresh(place)


def _is_safe(home: Path, profile: Profile) -> bool:
    """Whether a home that an agent had can be furnished again: no link leads out of it."""
    places = (home, *(home / place for place in (*profile.settings, *profile.login)))
    steps = {step for place in places for step in (place, *place.parents) if step.is_relative_to(home)}
    return home.is_dir() and not any(step.is_symlink() for step in steps)


def writes_into_tree(project: ProjectFile) -> bool:
    """Whether the worker puts files of the user, or of a set-up, into the tree before the agent begins."""
    return bool(project.workspace.setup or project.workspace.include)


def _read(place: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((place / SESSION).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_fresh(place: Path) -> bool:
    return now_seconds() - (place / SESSION).stat().st_mtime < KEPT_SECONDS
