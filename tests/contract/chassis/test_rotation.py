"""Keys, certificates and authorities are renewed under constant calls: not one of them fails, and the new ones are shown."""

import asyncio
import socket
import ssl
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from structlog.testing import capture_logs

from pointsman.services.chassis.core.config import ClientSettings, PeerSettings, ServerSettings
from pointsman.services.chassis.core.supervision import Loops
from pointsman.services.chassis.rpc.authentication import Access
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from tests.contract.chassis.test_access import PING, access_file, ping, serving
from tests.helpers.certificates import Authority, Pair, serial_of, serial_shown
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled

MORE_CALLS = 20
SHOP = {"roles": ["viewer"], "projects": ["shop"]}


class Callers:
    """Calls that follow one another without a pause, and what became of them."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self._done: dict[str, int] = {}
        self._stopped: set[str] = set()
        self._ended: set[str] = set()

    async def call(self, name: str, one: Callable[[], Awaitable[Any]]) -> None:
        """Call until stopped."""
        self._done[name] = 0
        while name not in self._stopped:
            try:
                await one()
            except (grpc.aio.AioRpcError, OSError) as error:
                self.failures.append(f"{name}: {error}")
            self._done[name] += 1
        self._ended.add(name)

    def stop(self, *names: str) -> None:
        """Let these end with the call that they have."""
        self._stopped |= set(names)

    async def end(self, name: str) -> None:
        """Stop one, and wait until its last call is over."""
        self.stop(name)

        async def has_ended() -> bool:
            return name in self._ended

        await eventually(has_ended)

    async def go_on(self) -> None:
        """Wait until everybody has called some more."""
        before = dict(self._done)

        async def all_have() -> bool:
            going = before.keys() - self._stopped
            return all(self._done[name] >= before[name] + MORE_CALLS for name in going)

        await eventually(all_have, 30)


@asynccontextmanager
async def calling(**ones: Callable[[], Awaitable[Any]]) -> AsyncIterator[Callers]:
    """Callers at work for the length of the block."""
    callers = Callers()
    async with asyncio.TaskGroup() as group:
        for name, one in ones.items():
            group.create_task(callers.call(name, one))
        await asyncio.sleep(0)
        try:
            await callers.go_on()
            yield callers
        finally:
            callers.stop(*ones)


def two_authorities(folder: Path) -> tuple[Authority, Authority]:
    for name in ("old", "new"):
        (folder / name).mkdir()
    return Authority(folder / "old", "old authority"), Authority(folder / "new", "new authority")


def with_token(channel: grpc.aio.Channel, token: str) -> Callable[[], Awaitable[Any]]:
    method: Any = channel.unary_unary(PING)
    metadata = (("pointsman-project", "shop"), ("authorization", f"Bearer {token}"))
    return lambda: method(b"", metadata=metadata, timeout=scaled(5))


async def test_the_keys_of_tokens_overlap_and_a_broken_file_leaves_the_last_good_ones(tmp_path: Path) -> None:
    old, new = two_authorities(tmp_path)
    keys, pair = tmp_path / "keys.pem", old.issue("server")
    keys.write_bytes(old.public_key.read_bytes())
    settings = ServerSettings(port=0, tls_certificate=pair.certificate, tls_key=pair.key, token_keys=keys)
    both = old.public_key.read_bytes() + new.public_key.read_bytes()
    tokens = {name: authority.token({"sub": name, **SHOP}) for name, authority in (("old", old), ("new", new))}
    client = ClientSettings(authority=old.certificate)
    async with serving(settings) as address, open_channel(address, credentials=client) as channel:
        with capture_logs() as logs:
            async with calling(before=with_token(channel, tokens["old"])) as callers:
                keys.write_bytes(both)
                await callers.go_on()
                async with calling(after=with_token(channel, tokens["new"])) as later:
                    for broken in (both[: len(both) * 3 // 4], both + both[:40], b"", b"nonsense\n"):
                        keys.write_bytes(broken)
                        await callers.go_on()
                        await later.go_on()
                    keys.unlink()
                    await later.go_on()
                    keys.write_bytes(both)
                    await callers.go_on()
                    await callers.end("before")
                    keys.write_bytes(new.public_key.read_bytes())
                    await later.go_on()
        assert (callers.failures, later.failures) == ([], [])
        assert {entry["event"] for entry in logs} == {"files_not_taken_up"}
        assert str(await ping(address, client, token=tokens["old"])) == "UNAUTHENTICATED"


async def test_a_server_does_not_start_on_keys_that_are_none(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.public_key.write_text("nonsense")
    with pytest.raises(Exception, match="is not a PEM file of public keys"):
        Access(ServerSettings(token_keys=authority.public_key))


class Seen:
    """The serial numbers of the certificates that a server's clients have shown."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.last = 0
        identify = Access.authenticate

        def note(access: Access, context: Any, metadata: Any) -> Any:
            (shown,) = context.auth_context()["x509_pem_cert"]
            self.last = x509.load_pem_x509_certificate(shown).serial_number
            return identify(access, context, metadata)

        monkeypatch.setattr(Access, "authenticate", note)


def copied(folder: Path, name: str, pair: Pair) -> Pair:
    copy = Pair(folder / f"{name}.key", folder / f"{name}.crt")
    copy.key.write_bytes(pair.key.read_bytes())
    copy.certificate.write_bytes(pair.certificate.read_bytes())
    return copy


async def replaced(live: Pair, renewed: Pair, callers: Callers) -> None:
    """First the key, then the certificate, with calls in between while they do not belong together."""
    live.key.write_bytes(renewed.key.read_bytes())
    await callers.go_on()
    live.certificate.write_bytes(renewed.certificate.read_bytes())
    await callers.go_on()


async def test_both_sides_change_to_a_new_authority_without_a_failed_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = two_authorities(tmp_path)
    server, client = (copied(tmp_path, name, old.issue(name)) for name in ("server", "ops"))
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(old.certificate.read_bytes())
    grants = access_file(tmp_path, {"name": "ops", "roles": ["viewer"], "projects": ["*"]})
    settings = ServerSettings(
        port=0, tls_certificate=server.certificate, tls_key=server.key, client_authority=trusted, access=grants
    )
    shown = ClientSettings(authority=trusted, certificate=client.certificate, key=client.key)
    renewed_server, renewed_client, seen = new.issue("server"), new.issue("ops"), Seen(monkeypatch)
    async with serving(settings) as address, open_channel(address, credentials=shown) as channel:
        method: Any = channel.unary_unary(PING)

        async def anew() -> None:
            async with open_channel(address, credentials=shown) as fresh:
                once: Any = fresh.unary_unary(PING)
                await once(b"", timeout=scaled(5))

        async with calling(lasting=lambda: method(b"", timeout=scaled(5)), anew=anew) as callers:
            trusted.write_bytes(old.certificate.read_bytes() + new.certificate.read_bytes())
            await callers.go_on()
            await replaced(server, renewed_server, callers)
            await callers.end("anew")
            await replaced(client, renewed_client, callers)
            trusted.write_bytes(new.certificate.read_bytes())
            await callers.go_on()
        assert callers.failures == []
        assert seen.last == serial_of(renewed_client.certificate), "the channel that lasted shows the new certificate"
        known = await asyncio.to_thread(serial_shown, address, new.certificate, renewed_client)
        assert known == serial_of(renewed_server.certificate)


def resumed(
    address: str, context: ssl.SSLContext, earlier: ssl.SSLSession | None = None
) -> tuple[bool | None, ssl.SSLSession | None]:
    """Whether a new connection resumed the earlier session, and its own session."""
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), scaled(5)) as connection,
        context.wrap_socket(connection, server_hostname=host, session=earlier) as encrypted,
    ):
        assert encrypted.recv(1), "the session comes with the first bytes of the server"
        return encrypted.session_reused, encrypted.session


async def test_one_tls_context_serves_until_the_certificate_is_renewed(tmp_path: Path) -> None:
    """A session can be resumed only in the context that began it; gRPC crashes when a crowd changes contexts."""
    authority = Authority(tmp_path)
    live = copied(tmp_path, "live", authority.issue("server"))
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.set_alpn_protocols(["h2"])
    async with serving(ServerSettings(port=0, tls_certificate=live.certificate, tls_key=live.key)) as address:
        _, session = await asyncio.to_thread(resumed, address, context)
        assert (await asyncio.to_thread(resumed, address, context, session))[0] is True
        copied(tmp_path, "live", authority.issue("renewed"))
        assert (await asyncio.to_thread(resumed, address, context, session))[0] is False


async def test_the_gateway_shows_a_renewed_certificate_without_a_failed_call(tmp_path: Path) -> None:
    old, new = two_authorities(tmp_path)
    pair = copied(tmp_path, "gateway", old.issue("gateway"))
    front = GatewayServer(GatewaySettings(port=0, tls_certificate=pair.certificate, tls_key=pair.key))
    service, loops = front.service(PeerSettings().all_at("127.0.0.1:1")), Loops()
    for name, work in service.loops:
        loops.start(name, work)
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(old.certificate.read_bytes() + new.certificate.read_bytes())
    context = ssl.create_default_context(cafile=str(trusted))
    address = front.address.removeprefix("https://")

    def ask() -> None:
        with urllib.request.urlopen(f"{front.address}/healthz", None, 20, context=context) as answer:
            assert answer.read() == b"ok\n"

    renewed = new.issue("gateway")
    try:
        async with calling(asking=lambda: asyncio.to_thread(ask)) as callers:
            await replaced(pair, renewed, callers)
            shown = await asyncio.to_thread(serial_shown, address, new.certificate)
        assert callers.failures == []
        assert shown == serial_of(renewed.certificate)
    finally:
        await loops.stop()
        assert service.close is not None
        await service.close()
