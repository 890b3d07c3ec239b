"""What a service hears from another one, and what it passes on of it."""

import asyncio
import socket

import grpc
import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.client import Peer, open_channel
from tests.helpers.counter import counter_pb2, counter_pb2_grpc

TRIES_UNTIL_PATIENT = 7
"""By then a channel waits as long as it ever does before it tries to connect again."""


async def test_a_peer_that_is_away_is_told_without_its_address() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can take the port meanwhile
        port = nobody.getsockname()[1]
        async with open_channel(f"127.0.0.1:{port}") as channel:
            peer = Peer(channel, counter_pb2_grpc.CounterServiceStub)
            with pytest.raises(Refusal) as caught:
                await peer.call(peer.stub.Add, counter_pb2.AddRequest(), "local", "")
    assert caught.value.reason is Reason.UNAVAILABLE
    assert str(port) not in caught.value.message
    assert "try again" in caught.value.message


async def test_a_peer_that_is_back_is_reached_by_the_next_call_however_long_it_was_away() -> None:
    tried = asyncio.Semaphore(0)

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        tried.release()

    nobody = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = nobody.sockets[0].getsockname()[1]
    async with open_channel(f"127.0.0.1:{port}") as channel:
        peer = Peer(channel, counter_pb2_grpc.CounterServiceStub)
        channel.get_state(try_to_connect=True)
        for _ in range(TRIES_UNTIL_PATIENT):
            await tried.acquire()
        nobody.close()
        server = grpc.aio.server()
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        with pytest.raises(Refusal) as caught:
            await peer.call(peer.stub.Add, counter_pb2.AddRequest(), "local", "")
        await server.stop(None)
    assert caught.value.reason is Reason.UNIMPLEMENTED, "it was reached, and knows no such call"
