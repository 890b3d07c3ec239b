"""Authentication and authorization of HTTP requests: the tokens, roles and projects of gRPC calls."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.requests import Request

from pointsman.credentials.folder import CredentialFolder
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
from pointsman.services.gateway.sessions import Sessions, unauthenticated

MAX_TOKEN = 4096


class Authentication:
    """Authorizes requests and gives the metadata of their calls to services."""

    def __init__(
        self, settings: GatewaySettings, credentials: CredentialFolder | None = None, address: str = ""
    ) -> None:
        """Require tokens of the configured keys, else sessions and tokens of the credentials, else nothing."""
        folder = credentials if settings.token_keys is None else None
        self.sessions = Sessions(folder, address) if folder is not None else None
        """The sessions of the console; None where people bring tokens, or nothing is asked for."""
        self._requires_token = settings.token_keys is not None or folder is not None
        self._forwards_token = not settings.vouches
        taken = ServerSettings(token_keys=settings.token_keys, client_authority=None, access=None)
        self._access = Access(taken, folder)
        self.rights = Rights(self._access)

    def admit(self, method: Method, request: Request) -> Metadata:
        """The metadata of the call, from the headers of the same names; services verify a forwarded token again."""
        project, token = request.headers.get("pointsman-project", "local"), request.headers.get("authorization", "")
        if not PROJECT.fullmatch(project):
            raise invalid_field("pointsman-project", "must be 1 to 64 letters, digits, '_', '.' or '-'")
        if len(token) > MAX_TOKEN or not token.isascii() or (token and not token.isprintable()):
            raise Refusal(
                Reason.UNAUTHENTICATED, f"the authorization header is not {MAX_TOKEN} letters of ASCII at most"
            )
        if self._requires_token and (token or not self.has_session(request)):
            self._authorize(method, project, token)
        metadata = metadata_for(project, valid_traceparent(request.headers.get("traceparent", "")))
        return (*metadata, ("authorization", token)) if token and self._forwards_token else metadata

    def has_session(self, request: Request) -> bool:
        """Whether the request comes from an open session of the console."""
        return self.sessions is not None and self.sessions.is_proven(request)

    def watch(self, method: Method, request: Request, end: Callable[[Refusal], None]) -> AbstractContextManager[None]:
        """A context for an open stream: `end` is called with a refusal when the caller's right is revoked."""
        project, token = request.headers.get("pointsman-project", "local"), request.headers.get("authorization", "")
        if self.sessions is not None and not token:
            return self.sessions.hold(request, end)
        return self.rights.hold(Right(None, [("authorization", token)], project, method.access), end)

    def _authorize(self, method: Method, project: str, token: str) -> None:
        if not token and self.sessions is not None:
            raise unauthenticated()
        if not token:
            raise Refusal(Reason.UNAUTHENTICATED, "send a bearer token in the authorization header")
        grant = self._access.authenticate(None, [("authorization", token)])
        self._access.authorize(grant, project, method.access)
