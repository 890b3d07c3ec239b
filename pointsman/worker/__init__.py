"""Writing agents in Python: a `Worker`, a decorator per role, a function from a job to its result.

A worker polls for what its roles can do, holds each assignment by a lease that it keeps alive, and hands the result in;
a function that raises gives the assignment up. `CommandAgent` runs any command-line agent instead, `Verifier` proves
work, `Surveyor` looks at a repository: `pointsman agent` starts all three. Nothing here reaches the services' code.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointsman.sandbox import Limits
    from pointsman.worker.command import CommandAgent
    from pointsman.worker.sdk import GiveUp, Job, Worker
    from pointsman.worker.survey import Surveyor
    from pointsman.worker.verifier import Verifier
    from pointsman.worker.workspace import Workspace

__all__ = ["CommandAgent", "GiveUp", "Job", "Limits", "Surveyor", "Verifier", "Worker", "Workspace"]


def __getattr__(name: str) -> Any:
    """Imports the public names at their first use: `pointsman evidence run`, which agents call often, needs none."""
    if name not in __all__:
        raise AttributeError(name)
    from pointsman.sandbox import Limits
    from pointsman.worker.command import CommandAgent
    from pointsman.worker.sdk import GiveUp, Job, Worker
    from pointsman.worker.survey import Surveyor
    from pointsman.worker.verifier import Verifier
    from pointsman.worker.workspace import Workspace

    public = (CommandAgent, GiveUp, Job, Limits, Surveyor, Verifier, Worker, Workspace)
    globals().update({one.__name__: one for one in public})
    return globals()[name]
