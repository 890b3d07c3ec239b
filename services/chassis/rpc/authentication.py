"""Who a caller is and what it may do: by client certificate, by signed token, or, on loopback, everybody."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import jwt
import msgspec
from google.protobuf.descriptor import MethodDescriptor

from pointsman.api.common.v1 import common_pb2
from pointsman.services.chassis.core.caller import LOCAL, Role
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field
from pointsman.services.chassis.rpc.file_watcher import WatchedFiles, check_pair, read_authority
from pointsman.services.chassis.rpc.tokens import claims_of, read_keys

EVERY_PROJECT = "*"
MAY_CALL: dict[str, frozenset[Role]] = {
    "ROLE_VIEWER": frozenset(Role),
    "ROLE_OPERATOR": frozenset({Role.OPERATOR, Role.SERVICE, Role.ADMIN}),
    "ROLE_AGENT": frozenset({Role.AGENT, Role.SERVICE, Role.ADMIN}),
    "ROLE_SERVICE": frozenset({Role.SERVICE, Role.ADMIN}),
    "ROLE_ADMIN": frozenset({Role.ADMIN}),
}
"""The role an RPC asks for, and the roles that have it; an RPC that names none is for admins."""


class Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One principal: its name (a certificate's URI, or its common name if it has none), its roles, its projects."""

    name: str
    roles: frozenset[Role]
    projects: frozenset[str]


class AccessFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that POINTSMAN_SERVER_ACCESS names."""

    principals: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class MethodAccess:
    """What an RPC asks of its caller."""

    method: str
    role: str

    @property
    def roles(self) -> frozenset[Role]:
        """The roles that have it."""
        return MAY_CALL.get(self.role, frozenset({Role.ADMIN}))


def method_access(name: str, method: MethodDescriptor) -> MethodAccess:
    """What the contract says of an RPC."""
    role: Any = method.GetOptions().Extensions[common_pb2.role]
    return MethodAccess(name, common_pb2.Role.Name(role))


class Access:
    """Identifies callers by what the server's settings accept, and holds them to their roles and projects."""

    def __init__(self, settings: ServerSettings) -> None:
        self.asks = settings.asks_for_credentials
        """Whether callers have to say who they are."""
        access, keys = settings.access, settings.token_keys
        self._file = WatchedFiles([access], lambda: read_access(access)) if access else None
        self._keys = WatchedFiles([keys], lambda: read_keys(keys)) if keys else None

    @property
    def contents(self) -> tuple[Any, Any]:
        """What the access file and the file of keys hold now: another object when it has changed."""
        return self._file and self._file.value, self._keys and self._keys.value

    def authenticate(self, context: Any, metadata: Iterable[tuple[str, str | bytes]]) -> Grant:
        """The caller, or UNAUTHENTICATED."""
        if not self.asks:
            return EVERYBODY
        for key, value in metadata:
            if key == "authorization":
                return self._by_token(str(value))
        return self._by_certificate(context.auth_context())

    def authorize(self, grant: Grant, project: str, needed: MethodAccess) -> None:
        """Refuse what the caller's roles or projects do not cover; a project that is not there answers alike."""
        if project not in grant.projects and EVERY_PROJECT not in grant.projects:
            raise Refusal(
                Reason.PERMISSION_DENIED,
                f"{grant.name} has no part in project {project}",
                metadata={"method": needed.method, "role": ""},
            )
        if not grant.roles & needed.roles:
            wanted = needed.role.removeprefix("ROLE_").lower()
            raise Refusal(
                Reason.PERMISSION_DENIED,
                f"{needed.method} asks for the role {wanted}",
                metadata={"method": needed.method, "role": wanted},
            )

    def _by_token(self, header: str) -> Grant:
        scheme, _, token = header.partition(" ")
        if self._keys is None or scheme.lower() != "bearer":
            raise _unknown("this server takes no such token")
        try:
            claims = claims_of(token.strip(), self._keys.value)
            projects = claims.get("projects", ())
            return msgspec.convert(
                {"name": claims["sub"], "roles": claims.get("roles", ()), "projects": projects}, Grant
            )
        except (jwt.PyJWTError, msgspec.ValidationError):
            raise _unknown("the token is expired, malformed or not signed by a known key") from None

    def _by_certificate(self, auth: dict[str, Iterable[bytes]]) -> Grant:
        names = _names(auth)
        principals: tuple[Grant, ...] = self._file.value.principals if self._file else ()
        grants = {grant.name: grant for grant in principals}
        for name in names:
            if name in grants:
                return grants[name]
        raise _unknown("send a bearer token, or a client certificate that the access file names")


EVERYBODY = Grant(LOCAL, frozenset(Role), frozenset({EVERY_PROJECT}))


def server_credentials(settings: ServerSettings) -> grpc.ServerCredentials | None:
    """TLS as the settings say; files that change are taken up by the next handshake."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    files = (settings.tls_certificate, settings.tls_key, settings.client_authority)
    certificates = WatchedFiles(files, lambda: _certificates(settings))
    return grpc.dynamic_ssl_server_credentials(
        certificates.value,
        lambda: certificates.value,
        require_client_authentication=settings.client_authority is not None and settings.token_keys is None,
    )


def read_access(path: Path) -> AccessFile:
    """The access file, or what is wrong with it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=AccessFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise invalid_field("POINTSMAN_SERVER_ACCESS", f"{path}: {error}") from None


def _certificates(settings: ServerSettings) -> grpc.ServerCertificateConfiguration:
    assert settings.tls_certificate is not None
    assert settings.tls_key is not None
    check_pair(settings.tls_certificate, settings.tls_key)
    authority = read_authority(settings.client_authority) if settings.client_authority else None
    pair = (settings.tls_key.read_bytes(), settings.tls_certificate.read_bytes())
    return grpc.ssl_server_certificate_configuration([pair], authority)


def _names(auth: dict[str, Iterable[bytes]]) -> list[str]:
    """The names of a certificate: its URIs, which the authority has checked as such; only without one its common name.

    A common name in the form of a URI is none: an authority that lets people choose it would let them choose a SPIFFE id.
    """
    uris = [value.decode() for key in ("peer_spiffe_id", "peer_uri") for value in auth.get(key, ())]
    return uris or [name for value in auth.get("x509_common_name", ()) if "://" not in (name := value.decode())]


def _unknown(message: str) -> Refusal:
    return Refusal(Reason.UNAUTHENTICATED, message)
