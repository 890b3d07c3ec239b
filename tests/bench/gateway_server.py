"""The console that is measured, in a process of its own: `python -m tests.bench.gateway_server DATA`; prints where it is."""

import asyncio
import json
import sys
from pathlib import Path

from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from tests.e2e.consoles import console
from tests.scenarios.planes import NOBODY

LINKS = 16
"""Each opens one session."""


async def main(data: Path, *, asks_for_a_code: bool) -> None:
    """Serve until the process is ended."""
    async with console(data, NOBODY, asks_for_a_code=asks_for_a_code) as here:
        assert here.server is not None
        links = [here.server.console_link() for _ in range(LINKS)]
        freeze_startup_objects()
        where = {"address": here.address, "services": f"127.0.0.1:{here.service_port}", "links": links}
        print(json.dumps(where), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), asks_for_a_code=sys.argv[2] == "signed-in"))
