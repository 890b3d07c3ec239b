"""Which remotes and branches the integrator may touch: what the project file of the target says, and its own options."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pointsman.landing.target import Blocked
from pointsman.project import DeliverSection

OWN_BRANCHES = "pointsman/"
"""Branches that Pointsman makes, and may push with force."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the person who started the integrator allows beside the project file."""

    remotes: Sequence[str] = ()
    branches: Sequence[str] = ()

    def require(self, section: DeliverSection, remote: str, branch: str) -> None:
        """Refuses a remote or a branch that nobody has named."""
        if remote and remote not in (*self.remotes, section.push):
            raise Blocked(
                f"nothing allows a push to '{remote}': name it in [deliver] push of pointsman.toml on {branch}, or start "
                f"the integrator with --push {remote}"
            )
        wanted = (*self.branches, *section.branches, *((section.onto,) if section.onto else ()))
        if wanted and not any(fnmatchcase(branch, pattern) for pattern in wanted):
            raise Blocked(
                f"{branch} is not among the branches that may be landed on ({', '.join(wanted)}); name it in [deliver] "
                "branches of pointsman.toml"
            )
