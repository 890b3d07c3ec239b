"""A whole control plane in your test's own process: `async with control_plane_in(tmp_path) as client: …`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pointsman.client import Client, connect
from pointsman.services.all_in_one import build_all
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings
from pointsman.services.chassis.runtime.service import start


@asynccontextmanager
async def control_plane_in(folder: Path) -> AsyncIterator[Client]:
    """All services on SQLite files in a folder, on a free port, and a client of them; drained at the end."""
    running = await start(build_all(StoreSettings(data=folder)), ServerSettings(port=0), folder)
    try:
        async with connect(running.local_address, data=folder) as client:
            yield client
    finally:
        await running.stop()
