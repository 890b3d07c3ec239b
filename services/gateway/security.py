"""Protection against other web sites: known host names, mutations from the own origin, security headers."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointsman.services.chassis.core.errors import Reason
from pointsman.services.gateway import metrics
from pointsman.services.gateway.errors import Rejected, head_too_long, response_of

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
SAFE_METHODS = ("GET", "HEAD")
HEADER_OVERHEAD = len(": \r\n")
OWN_SITES = ("same-origin", "none")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class Guard:
    """ASGI middleware in front of every path."""

    app: ASGIApp
    names: frozenset[str]
    max_header_bytes: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check host, origin and header size, and add the security headers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                metrics.http_requests.labels(str(message["status"])).inc()
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            if _head_bytes(scope) > self.max_header_bytes:
                raise head_too_long(self.max_header_bytes)
            self.check(scope["method"], Headers(scope=scope))
        except Rejected as rejected:
            await response_of(rejected)(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)

    def check(self, method: str, headers: Headers) -> None:
        """Refuse an unknown host name, and another origin for methods that can change something."""
        host = headers.get("host", "")
        if _name(host) not in self.names:
            raise Rejected(
                403, Reason.PERMISSION_DENIED, "this host name is not served here; see POINTSMAN_GATEWAY_NAMES"
            )
        if method in SAFE_METHODS:
            return
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Rejected(403, Reason.PERMISSION_DENIED, "changes are taken from pages of this origin only")
        if headers.get("sec-fetch-site", "none") not in OWN_SITES:
            raise Rejected(403, Reason.PERMISSION_DENIED, "changes are taken from pages of this origin only")


def served_names(configured: str) -> frozenset[str]:
    """The accepted host names."""
    return frozenset((*LOOPBACK_NAMES, *(name.strip().lower() for name in configured.split(",") if name.strip())))


def _head_bytes(scope: Scope) -> int:
    """The size of URL and headers; h11 limits it only for a head that arrives in parts."""
    url = len(scope.get("raw_path", b"")) + len(scope["query_string"])
    return url + sum(len(name) + len(value) + HEADER_OVERHEAD for name, value in scope["headers"])


def _name(host: str) -> str:
    """A host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()
