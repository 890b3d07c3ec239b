"""HTTP connections within limits: deadlines for a request's head and body, a number per address, a size of the head."""

import asyncio
import ipaddress
import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pointsman.services.chassis.core.errors import Reason
from pointsman.services.gateway import metrics
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.gateway.errors import CLOSE, Rejected, head_too_long, response_of

STALL_SECONDS = 30.0
"""How long a reader may stand still while an answer waits to be sent."""
IPV6_SUBNET_BITS = 64


class Connections:
    """The open connections of each address, oldest first."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self._by_address: dict[str, dict[Connection, None]] = {}

    def enter(self, connection: "Connection") -> bool:
        """Whether there is room; the oldest connection of the address that asks nothing makes some."""
        others = self._by_address.setdefault(connection.address, {})
        limit = self.settings.max_connections_per_address
        if limit and len(others) >= limit:
            idle = next((other for other in others if other.is_idle), None)
            if idle is None:
                return False
            self.leave(idle)
            idle.refuse(_silent("other connections of this address ask for something"))
        self._by_address.setdefault(connection.address, {})[connection] = None
        return True

    def leave(self, connection: "Connection") -> None:
        """Forget a connection."""
        others = self._by_address.get(connection.address, {})
        others.pop(connection, None)
        if not others:
            self._by_address.pop(connection.address, None)


class Connection(H11Protocol):
    """One connection, with a clock for the part of the request that is awaited."""

    def __init__(self, *, others: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._others = others
        self._settings = others.settings
        self._awaited: object = None
        self._clock: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """The address of the other side; of an IPv6 address its subnet, which one host can fill."""
        host = self.client[0] if self.client else ""
        try:
            subnet = ipaddress.ip_network((host, IPV6_SUBNET_BITS), strict=False) if ":" in host else host
        except ValueError:
            return host
        return str(subnet)

    @property
    def is_idle(self) -> bool:
        """Whether nothing has been asked that is not answered."""
        return self.conn.their_state is h11.IDLE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or refuse it."""
        super().connection_made(transport)
        if self._others.enter(self):
            self._await(h11.IDLE)
        else:
            self.refuse(_too_many(self.address, self._settings.max_connections_per_address))

    def connection_lost(self, exc: Exception | None) -> None:
        """Give its place back."""
        self._others.leave(self)
        self._await(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """Wait for the reader, but not for ever."""
        super().pause_writing()
        self._stall = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Write on."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or too long; called where the error is handled, which says which."""
        error = sys.exc_info()[1]
        is_long = (
            isinstance(error, h11.ProtocolError)
            and error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        )
        limit = self._settings.max_header_bytes
        self.refuse(head_too_long(limit) if is_long else Rejected(400, Reason.MALFORMED_MESSAGE, msg, CLOSE))

    def refuse(self, rejected: Rejected) -> None:
        """Say why, and end the connection."""
        metrics.http_requests.labels(str(rejected.status)).inc()
        response = response_of(rejected)
        head = h11.Response(
            status_code=rejected.status,
            headers=response.raw_headers,
            reason=HTTPStatus(rejected.status).phrase.encode(),
        )
        for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _follow(self) -> None:
        """Let the clock run for what is awaited now; uvicorn has one of its own for the rest between two requests."""
        state = self.conn.their_state
        if state is h11.IDLE:
            begun = self._awaited is h11.IDLE or bool(self.conn.trailing_data[0])
            self._await(h11.IDLE if begun else None)
        else:
            self._await(state if state is h11.SEND_BODY else None)

    def _await(self, state: object) -> None:
        if state is self._awaited:
            return
        self._awaited = state
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        if state is h11.IDLE:
            self._clock = self.loop.call_later(self._settings.header_seconds, self._end_head)
        elif state is h11.SEND_BODY:
            self._clock = self.loop.call_later(self._settings.body_seconds, self.transport.abort)

    def _end_head(self) -> None:
        if not self.transport.is_closing():
            seconds = self._settings.header_seconds
            self.refuse(_silent(f"no whole request within {seconds:g} s (POINTSMAN_GATEWAY_HEADER_SECONDS)"))


def _silent(why: str) -> Rejected:
    return Rejected(408, Reason.DEADLINE_EXCEEDED, f"{why}; connect again", CLOSE)


def _too_many(address: str, limit: int) -> Rejected:
    return Rejected(
        429,
        Reason.OVERLOADED,
        f"{limit} connections of {address} are at work; end one, or raise POINTSMAN_GATEWAY_MAX_CONNECTIONS_PER_ADDRESS",
        CLOSE,
    )
