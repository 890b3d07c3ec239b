"""Settings of the workers that a command starts."""

from typing import Annotated

from msgspec import Meta

from pointsman.services.chassis.core.settings import Settings
from pointsman.worker.bounds import TreeLimits

STANDARD = TreeLimits()


class WorkerSettings(Settings, prefix="POINTSMAN_WORKER_"):
    """Bounds of the work that is checked out, and how often forges are asked. Environment: POINTSMAN_WORKER_<NAME>."""

    tree_entries: Annotated[
        int, Meta(ge=1, description="Files and folders that work may add to what it started from.")
    ] = STANDARD.entries
    tree_bytes: Annotated[int, Meta(ge=1, description="Bytes that work may add to what it started from.")] = (
        STANDARD.size_bytes
    )
    tree_depth: Annotated[
        int, Meta(ge=1, description="Names in a path, unless the repository has longer ones already.")
    ] = STANDARD.depth
    forge_seconds: Annotated[
        float, Meta(ge=0.1, le=3600, description="Pause between two looks at open pull requests.")
    ] = 30.0

    @property
    def limits(self) -> TreeLimits:
        """The bounds."""
        return TreeLimits(self.tree_entries, self.tree_bytes, self.tree_depth)
