"""Settings of the workers that a command starts."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from pointsman.worker.bounds import TreeLimits

STANDARD = TreeLimits()


class WorkerSettings(BaseSettings):
    """Bounds of the work that is checked out. Environment: POINTSMAN_WORKER_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_WORKER_", frozen=True, extra="forbid")

    tree_entries: int = Field(
        default=STANDARD.entries, ge=1, description="Files and folders that work may add to what it started from."
    )
    tree_bytes: int = Field(
        default=STANDARD.size_bytes, ge=1, description="Bytes that work may add to what it started from."
    )
    tree_depth: int = Field(
        default=STANDARD.depth, ge=1, description="Names in a path, unless the repository has longer ones already."
    )

    @property
    def limits(self) -> TreeLimits:
        """The bounds."""
        return TreeLimits(self.tree_entries, self.tree_bytes, self.tree_depth)
