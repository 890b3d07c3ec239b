"""The composition root: builds any of the services, or all of them and the gateway, for one process.

A context is imported when it is built, so that a process with one service does not load the others.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pointsman.services.chassis.core.config import PeerSettings, StoreSettings, load

if TYPE_CHECKING:
    from pointsman.services.chassis.runtime.service import Service
    from pointsman.services.gateway.__main__ import GatewayServer

Build = Callable[[str], "Sequence[Service]"]
"""Builds services for a process that listens at the given address."""


def _router(stores: StoreSettings, _address: str) -> "Service":
    from pointsman.services.router.__main__ import build
    from pointsman.services.router.config import RouterSettings

    return build(stores, load(RouterSettings))


def _workflow(stores: StoreSettings, _address: str) -> "Service":
    from pointsman.services.workflow.__main__ import build
    from pointsman.services.workflow.config import WorkflowSettings

    return build(stores, load(WorkflowSettings))


def _pipeline(stores: StoreSettings, _address: str) -> "Service":
    from pointsman.services.pipeline.__main__ import build
    from pointsman.services.pipeline.config import PipelineSettings

    return build(stores, load(PipelineSettings))


def _orchestrator(stores: StoreSettings, address: str) -> "Service":
    from pointsman.services.orchestrator.__main__ import build
    from pointsman.services.orchestrator.config import OrchestratorSettings

    return build(stores, load(OrchestratorSettings), load(PeerSettings).all_at(address))


_BUILDERS: Mapping[str, Callable[[StoreSettings, str], "Service"]] = {
    "router": _router,
    "workflow": _workflow,
    "pipeline": _pipeline,
    "orchestrator": _orchestrator,
}
CONTEXTS = tuple(_BUILDERS)


def build_one(name: str, stores: StoreSettings, address: str) -> "Service":
    """Builds the service of one context; the orchestrator finds peers without a setting of their own at the address."""
    return _BUILDERS[name](stores, address)


def build_all(stores: StoreSettings, contexts: Sequence[str] = CONTEXTS) -> Build:
    """A builder of the services of these contexts."""
    return lambda address: [build_one(name, stores, address) for name in contexts]


def build_with_gateway(stores: StoreSettings, gateway: "GatewayServer") -> Build:
    """A builder of all services and the gateway to them."""
    return lambda address: [*build_all(stores)(address), gateway.service(load(PeerSettings).all_at(address))]


def migrations_of(name: str) -> Path:
    """The folder of a context's migrations."""
    return Path(__file__).parent / name / "migrations"
