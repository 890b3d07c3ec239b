"""Connections that say nothing, or too much, are ended; they take no room from those who ask something."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from pointsman.services.chassis.core.config import PeerSettings
from pointsman.services.chassis.core.supervision import Loops
from tests.contract.gateway.gateways import free_gateway
from tests.helpers.certificates import Authority
from tests.helpers.limits import within

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY_TO_COME = (
    b"POST /api/v1/orchestrator.OrchestratorService/GetRun HTTP/1.1\r\n"
    b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
)
OTHER_ADDRESS = "127.0.0.2"
ANSWER_SECONDS = 30.0


class Connection:
    """One HTTP connection, spoken by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        async with within(ANSWER_SECONDS):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            return int(head.split()[1]), await self._reader.readexactly(int(length.split(b":")[1]))

    async def health(self) -> int:
        """The status of a whole request."""
        self.send(HEALTH)
        return (await self.answer())[0]

    async def line(self) -> bytes:
        async with within(ANSWER_SECONDS):
            return await self._reader.readline()

    async def ended(self) -> bytes:
        """What comes until the other side ends the connection."""
        async with within(ANSWER_SECONDS):
            with contextlib.suppress(ConnectionResetError):
                return await self._reader.read()
        return b""

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class Place:
    """Where a gateway listens, and the connections to it."""

    def __init__(self, port: int, opened: AsyncExitStack) -> None:
        self.port = port
        self._opened = opened

    async def connect(self, source: str = "127.0.0.1", **tls: Any) -> Connection:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0), **tls)
        connection = Connection(reader, writer)
        self._opened.push_async_callback(connection.close)
        return connection


@asynccontextmanager
async def listening(**settings: Any) -> AsyncIterator[Place]:
    """A gateway without services behind it."""
    with free_gateway(**settings) as server:
        service = server.service(PeerSettings().all_at("127.0.0.1:9"))
        loops = Loops()
        for name, work in service.loops:
            loops.start(name, work)
        try:
            async with AsyncExitStack() as opened:
                yield Place(int(server.address.rpartition(":")[2]), opened)
        finally:
            await loops.stop()
            assert service.close is not None
            await service.close()


async def test_silent_connections_of_one_address_take_no_room_from_another() -> None:
    async with listening(max_connections=40, max_connections_per_address=30, header_seconds=600.0) as place:
        for _ in range(100):
            await place.connect()
        assert await (await place.connect(OTHER_ADDRESS)).health() == 200


async def test_a_silent_connection_gives_way_to_one_of_the_same_address_that_asks() -> None:
    async with listening(max_connections=40, max_connections_per_address=30, header_seconds=600.0) as place:
        silent = [await place.connect() for _ in range(30)]
        assert await (await place.connect()).health() == 200
        assert (await silent[0].answer())[0] == 408


async def test_a_connection_that_never_asks_is_ended_with_its_reason() -> None:
    async with listening(header_seconds=0.2) as place:
        silent, slow = await place.connect(), await place.connect()
        slow.send(HEALTH[:20])
        for connection in (silent, slow):
            status, body = await connection.answer()
            assert (status, "POINTSMAN_GATEWAY_HEADER_SECONDS" in body.decode()) == (408, True)
            assert await connection.ended() == b""


async def test_a_second_request_that_never_becomes_whole_is_ended_too() -> None:
    async with listening(header_seconds=0.2, idle_seconds=600.0) as place:
        connection = await place.connect()
        assert await connection.health() == 200
        connection.send(HEALTH[:20])
        assert (await connection.answer())[0] == 408


async def test_a_connection_that_rests_between_requests_is_ended() -> None:
    async with listening(idle_seconds=0.2) as place:
        connection = await place.connect()
        assert await connection.health() == 200
        assert await connection.ended() == b""


async def test_a_body_that_never_becomes_whole_is_ended() -> None:
    async with listening(body_seconds=0.2) as place:
        connection = await place.connect()
        connection.send(BODY_TO_COME + b"{")
        assert await connection.ended() == b""


async def test_more_connections_of_one_address_than_allowed_are_refused_while_all_are_at_work() -> None:
    async with listening(max_connections_per_address=2) as place:
        for _ in range(2):
            working = await place.connect()
            working.send(BODY_TO_COME.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
            assert await working.line() == b"HTTP/1.1 100 Continue\r\n"
        status, body = await (await place.connect()).answer()
        assert (status, "POINTSMAN_GATEWAY_MAX_CONNECTIONS_PER_ADDRESS" in body.decode()) == (429, True)
        assert (await (await place.connect(OTHER_ADDRESS)).health()) == 200


async def test_a_long_header_is_refused_with_its_limit() -> None:
    async with listening() as place:
        whole, cut = await place.connect(), await place.connect()
        whole.send(HEALTH.replace(b"\r\n\r\n", b"\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n"))
        cut.send(HEALTH.replace(b"\r\n\r\n", b"\r\nX-Long: " + b"x" * 100_000))
        for connection in (whole, cut):
            status, body = await connection.answer()
            error = msgspec.json.decode(body)["error"]
            assert (status, error["reason"]) == (431, "MALFORMED_MESSAGE")
            assert "POINTSMAN_GATEWAY_MAX_HEADER_BYTES" in error["message"]


async def test_a_tls_connection_that_never_shakes_hands_is_ended(tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue("server")
    async with listening(tls_certificate=pair.certificate, tls_key=pair.key, header_seconds=0.2) as place:
        silent = await place.connect()
        assert await silent.ended() == b""
