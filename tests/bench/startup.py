"""How long `pointsman up` takes until it serves: on an empty data directory, and on one that is there already."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.scenarios.commands import POINTSMAN, Running, until_killed

ROUNDS = 5
FLOOR = """
import asyncio, alembic.command, grpc.aio, sqlalchemy, starlette.applications, uvicorn
async def main():
    server = grpc.aio.server()
    server.add_insecure_port("127.0.0.1:0")
    await server.start()
asyncio.run(main())
"""
"""The same libraries, and a server with nothing behind it."""


def main() -> None:
    """Measure in turn and print the middle round of each."""
    seconds: dict[str, list[float]] = {"floor": [], "first": [], "again": []}
    for _ in range(ROUNDS):
        seconds["floor"].append(floor())
        with tempfile.TemporaryDirectory() as folder:
            seconds["first"].append(serving(Path(folder)))
            seconds["again"].append(serving(Path(folder)))
    middle = {name: sorted(taken)[ROUNDS // 2] for name, taken in seconds.items()}
    for name, taken in middle.items():
        row = {"name": f"up_{name}", "seconds": round(taken, 2), "ratio_to_floor": round(taken / middle["floor"], 2)}
        print(json.dumps(row), flush=True)


def floor() -> float:
    """Seconds that the libraries alone take."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", FLOOR], check=True)
    return time.perf_counter() - begun


def serving(data: Path) -> float:
    """Seconds from the command to the line that says where it listens."""
    begun = time.perf_counter()
    settings = {"POINTSMAN_DATA": str(data), "POINTSMAN_GATEWAY_PORT": "0"}
    with until_killed(Running(("up", "--port", "0"), settings, program=POINTSMAN)) as plane:
        plane.line_with(" up at ")
        return time.perf_counter() - begun


if __name__ == "__main__":
    main()
