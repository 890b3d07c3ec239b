"""Who calls over HTTP: the same tokens, roles and projects as over gRPC, by the same rules."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.requests import Request

from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field
from pointsman.services.chassis.rpc.authentication import Access
from pointsman.services.chassis.rpc.client import metadata_for
from pointsman.services.chassis.rpc.stream_rights import Right, Rights
from pointsman.services.chassis.rpc.validation import PROJECT
from pointsman.services.chassis.telemetry.context import valid_traceparent
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.gateway.contract import Method
from pointsman.services.gateway.peers import Metadata

MAX_TOKEN = 4096


class Door:
    """Takes callers in, with the metadata that their calls go on with."""

    def __init__(self, settings: GatewaySettings) -> None:
        """Ask for tokens where there is a key to check them with; on loopback everybody may come."""
        self._asks = settings.token_keys is not None
        self._hands_on = not settings.vouches
        self._access = Access(ServerSettings(token_keys=settings.token_keys, client_authority=None, access=None))
        self.rights = Rights(self._access)

    def admit(self, method: Method, request: Request) -> Metadata:
        """The call's metadata, from the headers of the same names; services that take tokens check them again."""
        project, token = request.headers.get("pointsman-project", "local"), request.headers.get("authorization", "")
        if not PROJECT.fullmatch(project):
            raise invalid_field("pointsman-project", "must be 1 to 64 letters, digits, '_', '.' or '-'")
        if len(token) > MAX_TOKEN or not token.isascii() or (token and not token.isprintable()):
            raise Refusal(
                Reason.UNAUTHENTICATED, f"the authorization header is not {MAX_TOKEN} letters of ASCII at most"
            )
        if self._asks:
            self._hold(method, project, token)
        metadata = metadata_for(project, valid_traceparent(request.headers.get("traceparent", "")))
        return (*metadata, ("authorization", token)) if token and self._hands_on else metadata

    def watch(self, method: Method, request: Request, end: Callable[[Refusal], None]) -> AbstractContextManager[None]:
        """While an admitted stream is open: `end` is called with the reason when its caller's right is gone."""
        project, token = request.headers.get("pointsman-project", "local"), request.headers.get("authorization", "")
        return self.rights.held(Right(None, [("authorization", token)], project, method.needed), end)

    def _hold(self, method: Method, project: str, token: str) -> None:
        if not token:
            raise Refusal(Reason.UNAUTHENTICATED, "send a bearer token in the authorization header")
        grant = self._access.authenticate(None, [("authorization", token)])
        self._access.authorize(grant, project, method.needed)
