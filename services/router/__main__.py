"""Wires the router together; `python -m pointsman.services.router` serves it alone."""

from pathlib import Path

from pointsman.api.router.v1 import router_pb2
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.runtime.service import Service, serve_alone
from pointsman.services.chassis.storage.database import Database
from pointsman.services.router.config import RouterSettings
from pointsman.services.router.loops import LOOPS
from pointsman.services.router.servicer import RouterServicer
from pointsman.services.router.store import RouterStore

MIGRATIONS = Path(__file__).parent / "migrations"


def build(stores: StoreSettings, settings: RouterSettings) -> Service:
    """Builds the router on the store that the settings name."""
    return build_on(Database(stores.url_for("router"), "router"), settings)


def build_on(database: Database, settings: RouterSettings) -> Service:
    """Builds the router on a given database."""
    router = RouterStore(database)
    descriptor = router_pb2.DESCRIPTOR.services_by_name["RouterService"]
    return Service("router", router.store, MIGRATIONS, [(descriptor, RouterServicer(router, settings))], LOOPS)


if __name__ == "__main__":
    serve_alone(lambda _address: [build(load(StoreSettings), load(RouterSettings))])
