"""What a service hears from another one, and what it passes on of it."""

import socket

import pytest

from pointsman.services.chassis.peer import Peer, open_channel
from pointsman.services.chassis.refusals import Reason, Refusal
from tests.helpers.counter import counter_pb2, counter_pb2_grpc


async def test_a_peer_that_is_away_is_told_without_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    async with open_channel(f"127.0.0.1:{port}") as channel:
        peer = Peer(channel, counter_pb2_grpc.CounterServiceStub)
        with pytest.raises(Refusal) as caught:
            await peer.call(peer.stub.Add, counter_pb2.AddRequest(), "local", "")
    assert caught.value.reason is Reason.UNAVAILABLE
    assert str(port) not in caught.value.message
    assert "try again" in caught.value.message
