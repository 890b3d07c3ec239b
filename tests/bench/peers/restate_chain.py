"""Restate: durable commands to virtual objects of a real server, each of which waits for the one before. Own environment.

`restate_chain.py CALLERS SECONDS FOLDER SERVER` prints how many steps were made durable.
"""

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import hypercorn.asyncio
import restate
from hypercorn.config import Config

STEPS = 25
START_SECONDS = 60
chain = restate.VirtualObject("chain")


@chain.handler()
async def step(ctx: restate.ObjectContext, _nothing: None) -> int:
    """One step: what the object knows is durable when it answers."""
    number = (await ctx.get("number", type_hint=int) or 0) + 1
    ctx.set("number", number)
    return number


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def restate_server(program: str, folder: str, ingress: int, admin: int) -> Iterator[int]:
    """A server with its data in the folder."""
    environment = {
        **os.environ,
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{free_port()}",
        "RESTATE_LOG_FILTER": "error",
        "DO_NOT_TRACK": "1",
    }
    command = [program, "--base-dir", folder, "--node-name", "peer"]
    with Path(folder, "restate.log").open("w") as log:
        child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


@contextmanager
def handlers_process(port: int) -> Iterator[int]:
    """The handlers in a process of their own."""
    child = subprocess.Popen([sys.executable, __file__, "serve", str(port)])
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


async def serve(port: int) -> None:
    """Serve the handlers."""
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.loglevel = "ERROR"
    await hypercorn.asyncio.serve(restate.app([chain]), config)


class Caller:
    """A connection to the server that is kept; a client library would take longer than the call."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def connect(self) -> "Caller":
        """Open it."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def step(self, name: str) -> None:
        """One call, until its answer is there."""
        head = f"POST /chain/{name}/step HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n"
        self._writer.write(head.encode())
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.partition(b"content-length:")[2].partition(b"\r")[0])
        body = await self._reader.readexactly(length)
        if b" 200 " not in answer[:20]:
            raise RuntimeError(body.decode())


async def register(admin: int, handlers: int) -> None:
    """Tell the server where the handlers are, as soon as it listens."""
    async with httpx.AsyncClient() as http:
        until = time.perf_counter() + START_SECONDS
        while True:
            try:
                answer = await http.post(
                    f"http://127.0.0.1:{admin}/deployments", json={"uri": f"http://127.0.0.1:{handlers}"}, timeout=30
                )
                answer.raise_for_status()
            except httpx.HTTPError:
                if time.perf_counter() > until:
                    raise
                await asyncio.sleep(0.3)
            else:
                return


def cpu_seconds(pids: Sequence[int]) -> float:
    """Processor time of the processes so far."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in stats) / os.sysconf("SC_CLK_TCK")


async def measure(ingress: int, callers: int, seconds: float, pids: Sequence[int]) -> dict[str, float]:
    """Let each caller take step after step, with a new object for each chain; the first chain of each is not counted."""
    numbers, connected = itertools.count(), [await Caller(ingress).connect() for _ in range(callers)]

    async def call(caller: Caller, until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            name = f"chain-{next(numbers)}"
            for _ in range(STEPS):
                await caller.step(name)
            done += STEPS
        return done

    await asyncio.gather(*(call(caller, time.perf_counter() + seconds / 4) for caller in connected))
    begun, used = time.perf_counter(), cpu_seconds(pids)
    done = sum(await asyncio.gather(*(call(caller, begun + seconds) for caller in connected)))
    elapsed, cpu = time.perf_counter() - begun, cpu_seconds(pids) - used
    return {"steps_per_second": done / elapsed, "cpu_ms": cpu / done * 1000}


def main() -> None:
    """Start everything, measure, end it."""
    callers, seconds, folder, program = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
    ingress, admin, handlers = free_port(), free_port(), free_port()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    with restate_server(program, folder, ingress, admin) as server, handlers_process(handlers) as python:
        asyncio.run(register(admin, handlers))
        found = asyncio.run(measure(ingress, callers, seconds, (server, python)))
    print(json.dumps({"version": version, **found}))


if sys.argv[1] == "serve":
    asyncio.run(serve(int(sys.argv[2])))
else:
    main()
