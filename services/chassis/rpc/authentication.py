"""Authentication by client certificate or bearer token, and authorization by role and project."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import grpc
import jwt
import msgspec
from google.protobuf.descriptor import MethodDescriptor

from pointsman.api.common.v1 import common_pb2
from pointsman.credentials.folder import CredentialFolder
from pointsman.services.chassis.core.caller import EVERY_PROJECT, Role
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.file_watcher import WatchedFiles, check_pair, read_authority
from pointsman.services.chassis.rpc.grants import LOCAL_GRANT, Grant, read_access
from pointsman.services.chassis.rpc.loopback import LoopbackTokens
from pointsman.services.chassis.rpc.tokens import claims_of, read_keys

MAY_CALL: dict[str, frozenset[Role]] = {
    "ROLE_VIEWER": frozenset(Role),
    "ROLE_OPERATOR": frozenset({Role.OPERATOR, Role.SERVICE, Role.ADMIN}),
    "ROLE_AGENT": frozenset({Role.AGENT, Role.SERVICE, Role.ADMIN}),
    "ROLE_SERVICE": frozenset({Role.SERVICE, Role.ADMIN}),
    "ROLE_ADMIN": frozenset({Role.ADMIN}),
}
"""The roles of a principal that satisfy the role of an RPC; an RPC without a role is for admins."""
HANDSHAKE_PAUSE_SECONDS = 0.2
"""Handshakes wait so long when a certificate is renewed; the one that reads the old context needs microseconds."""


@dataclass(frozen=True, slots=True)
class MethodAccess:
    """The role that an RPC requires."""

    method: str
    role: str

    @property
    def roles(self) -> frozenset[Role]:
        """The roles of a principal that satisfy it."""
        return MAY_CALL.get(self.role, frozenset({Role.ADMIN}))


def method_access(name: str, method: MethodDescriptor) -> MethodAccess:
    """The access option of an RPC in its proto."""
    role: Any = method.GetOptions().Extensions[common_pb2.role]
    return MethodAccess(name, common_pb2.Role.Name(role))


class Access:
    """Authenticates callers by the credentials that the settings accept, and authorizes their calls."""

    def __init__(self, settings: ServerSettings, credentials: CredentialFolder | None = None) -> None:
        self.requires_credentials = settings.requires_credentials or credentials is not None
        """False on loopback without keys, access file and credentials: then every caller has all roles."""
        self._loopback = LoopbackTokens(credentials) if credentials is not None else None
        access_path, keys_path = settings.access, settings.token_keys
        self._file = WatchedFiles([access_path], lambda: read_access(access_path)) if access_path else None
        self._keys = WatchedFiles([keys_path], lambda: read_keys(keys_path)) if keys_path else None

    @property
    def contents(self) -> tuple[Any, ...]:
        """The current access file, keys and secrets; a changed file gives a new object."""
        secrets = self._loopback.contents if self._loopback else ()
        return self._file and self._file.value, self._keys and self._keys.value, *secrets

    def authenticate(self, context: Any, metadata: Iterable[tuple[str, str | bytes]]) -> Grant:
        """The grant of the caller, or UNAUTHENTICATED."""
        if not self.requires_credentials:
            return LOCAL_GRANT
        for key, value in metadata:
            if key == "authorization":
                return self._by_token(str(value))
        return self._by_certificate(context.auth_context())

    def authorize(self, grant: Grant, project: str, access: MethodAccess) -> None:
        """Refuse a call that the roles or projects of the caller do not cover; an unknown project is refused alike."""
        if project not in grant.projects and EVERY_PROJECT not in grant.projects:
            raise Refusal(
                Reason.PERMISSION_DENIED,
                f"{grant.name} has no part in project {project}; name one that it has (--project, or the header pointsman-project)",
                metadata={"method": access.method, "role": ""},
            )
        if not grant.roles & access.roles:
            wanted = access.role.removeprefix("ROLE_").lower()
            raise Refusal(
                Reason.PERMISSION_DENIED,
                f"{access.method} asks for the role {wanted}",
                metadata={"method": access.method, "role": wanted},
            )

    def _by_token(self, header: str) -> Grant:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not (self._keys or self._loopback):
            raise _unauthenticated("this server takes no such token")
        try:
            if self._loopback is not None:
                return self._loopback.grant_of(token.strip())
            assert self._keys is not None
            claims = claims_of(token.strip(), self._keys.value)
            granted = {field: claims.get(field, ()) for field in ("roles", "projects", "capabilities")}
            return msgspec.convert({"name": claims["sub"], **granted}, Grant)
        except (jwt.PyJWTError, msgspec.ValidationError):
            raise _unauthenticated("the token is expired, malformed or not signed by a known key") from None

    def _by_certificate(self, auth: dict[str, Iterable[bytes]]) -> Grant:
        if self._loopback is not None:
            raise _unauthenticated("send a bearer token; `pointsman token --env` has one for this data directory")
        names = _certificate_names(auth)
        principals: tuple[Grant, ...] = self._file.value.principals if self._file else ()
        grants = {grant.name: grant for grant in principals}
        for name in names:
            if name in grants:
                return grants[name]
        raise _unauthenticated("send a bearer token, or a client certificate that the access file names")


def server_credentials(
    settings: ServerSettings, credentials: CredentialFolder | None = None
) -> grpc.ServerCredentials | None:
    """TLS credentials of the server; a changed file is used from the next handshake on, but for the pinned one."""
    if credentials is not None and settings.tls_certificate is None:
        return grpc.ssl_server_credentials([(credentials.key.read_bytes(), credentials.certificate.read_bytes())])
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    files = (settings.tls_certificate, settings.tls_key, settings.client_authority)
    certificates = WatchedFiles(files, lambda: _certificates(settings))
    renewed = RenewedCertificates(certificates)
    return grpc.dynamic_ssl_server_credentials(
        renewed.first,
        renewed,  # type: ignore[arg-type]  # the stubs leave out None, which gRPC documents
        require_client_authentication=settings.client_authority is not None and settings.token_keys is None,
    )


class RenewedCertificates:
    """What gRPC asks before each handshake: the certificates if they were renewed since it last asked, else None.

    gRPC replaces its TLS context by whatever it is given, and frees the old one while a handshake that began a moment
    before may still read it (ADR 0022). So it is given nothing that it has, and a renewal only after a pause in which
    no handshake begins.
    """

    def __init__(self, certificates: WatchedFiles[grpc.ServerCertificateConfiguration]) -> None:
        self._certificates = certificates
        self.first = self._given = certificates.value

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        """Called by gRPC under a lock of its own, so that other handshakes wait."""
        current = self._certificates.value
        if current is self._given:
            return None
        threading.Event().wait(HANDSHAKE_PAUSE_SECONDS)
        self._given = current
        return current


def _certificates(settings: ServerSettings) -> grpc.ServerCertificateConfiguration:
    assert settings.tls_certificate is not None
    assert settings.tls_key is not None
    check_pair(settings.tls_certificate, settings.tls_key)
    authority = read_authority(settings.client_authority) if settings.client_authority else None
    pair = (settings.tls_key.read_bytes(), settings.tls_certificate.read_bytes())
    return grpc.ssl_server_certificate_configuration([pair], authority)


def _certificate_names(auth: dict[str, Iterable[bytes]]) -> list[str]:
    """The names of a certificate: its URIs, which its authority has verified, or else its common name.

    A common name in the form of a URI is ignored: where people choose their common name, they could choose a SPIFFE id.
    """
    uris = [value.decode() for key in ("peer_spiffe_id", "peer_uri") for value in auth.get(key, ())]
    return uris or [name for value in auth.get("x509_common_name", ()) if "://" not in (name := value.decode())]


def _unauthenticated(message: str) -> Refusal:
    return Refusal(Reason.UNAUTHENTICATED, message)
