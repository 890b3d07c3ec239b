"""A run's calls to the other services, and their answers."""

from pointsman.services.orchestrator.peers import pipeline, router, workflow
from pointsman.services.orchestrator.peers.clients import REMOTE, Channels, Peers

__all__ = ["REMOTE", "Channels", "Peers", "pipeline", "router", "workflow"]
