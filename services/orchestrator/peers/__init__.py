"""A run's calls to the other services, and their answers as commands for the run."""

from typing import Any

from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.orchestrator.domain.calls import CALLS
from pointsman.services.orchestrator.domain.enums import Call
from pointsman.services.orchestrator.peers.clients import Channels, Peers
from pointsman.services.orchestrator.peers.pipeline import PIPELINE
from pointsman.services.orchestrator.peers.router import ROUTER
from pointsman.services.orchestrator.peers.workflow import WORKFLOW

__all__ = ["REMOTE", "Channels", "Peers", "perform"]
REMOTE = {**WORKFLOW, **PIPELINE, **ROUTER}


async def perform(peers: Peers, effect: PendingEffect) -> Any:
    """Make the effect's call; returns the command that its answer is."""
    kind = Call(effect.kind)
    return await REMOTE[kind](peers, effect, effect.data(CALLS[kind].request))
