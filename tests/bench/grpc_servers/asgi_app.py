"""Unary RPCs of all four services as an ASGI application, from `Server.call` on as over gRPC; streams are left out."""

import asyncio
import os
import struct
from pathlib import Path
from typing import Any

from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.in_process import SERVERS, CallableServer
from pointsman.services.chassis.runtime.service import start
from pointsman.services.orchestrator.config import OrchestratorSettings
from tests.scenarios.planes import NOBODY, builder

DATA, ADDRESS = "BENCH_DATA", "BENCH_ADDRESS"
_HEADERS = [(b"content-type", b"application/grpc")]
_FRAME = struct.Struct(">BI")
_servers: list[CallableServer] = []


async def serve() -> None:
    """Start the services, and write the address of their own gRPC server into a file."""
    build = builder(Path(os.environ[DATA]), NOBODY, OrchestratorSettings())
    running = await start(build, ServerSettings(port=0))
    _servers.append(next(iter(SERVERS.values())))
    await asyncio.to_thread(Path(os.environ[ADDRESS]).write_text, running.address)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """One RPC, or the life of the process."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    metadata = tuple((name.decode(), value.decode()) for name, value in scope["headers"])
    answer, status = b"", b"0"
    try:
        message_bytes = await _servers[0].call(scope["path"], body[_FRAME.size :], metadata)
        answer = _FRAME.pack(0, len(message_bytes)) + message_bytes
    except Refusal:
        status = b"9"
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS, "trailers": True})
    await send({"type": "http.response.body", "body": answer, "more_body": False})
    await send({"type": "http.response.trailers", "headers": [(b"grpc-status", status)], "more_trailers": False})


async def _live(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await serve()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
