"""Credentials on loopback: what each role of a data directory may do, and the tokens that show it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jwt

from pointsman._shared.system_time import now_seconds
from pointsman.credentials.folder import CredentialFolder, CredentialRole, UnusableCredentials
from pointsman.credentials.tokens import AUDIENCE
from pointsman.services.chassis.core.caller import EVERY_CAPABILITY, EVERY_PROJECT, Role
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.chassis.rpc.file_watcher import WatchedFiles
from pointsman.services.chassis.rpc.grants import Grant

ALGORITHM = "HS256"
MAX_KNOWN_TOKENS = 4096
MAX_PRINCIPAL = 512
INSECURE_WARNING = (
    "INSECURE: every process of this machine may do everything here, without a credential "
    "(--insecure-loopback or POINTSMAN_SERVER_INSECURE_LOOPBACK); this is for tests only"
)


class Powers(NamedTuple):
    """What a role of a data directory may do."""

    roles: frozenset[Role]
    capabilities: frozenset[str] = frozenset()


AGENT = frozenset({Role.AGENT})
POWERS: Mapping[CredentialRole, Powers] = {
    CredentialRole.OPERATOR: Powers(frozenset({Role.OPERATOR, Role.ADMIN})),
    CredentialRole.PLANNER: Powers(AGENT, frozenset({"plan", "research", "survey", "design"})),
    CredentialRole.CODER: Powers(AGENT, frozenset({"code", "resolve"})),
    CredentialRole.REVIEWER: Powers(AGENT, frozenset({"review", "debate"})),
    CredentialRole.VERIFIER: Powers(AGENT, frozenset({"verify"})),
    CredentialRole.INTEGRATOR: Powers(AGENT, frozenset({"integrate"})),
    CredentialRole.GATEWAY: Powers(frozenset({Role.OPERATOR, Role.ADMIN})),
    CredentialRole.SERVICE: Powers(frozenset({Role.SERVICE}), frozenset({EVERY_CAPABILITY})),
}
"""A service may be handed everything: its mock agents play every role."""


class _Known(NamedTuple):
    """A token that was verified."""

    role: CredentialRole
    grant: Grant
    expires_at: int
    secret: bytes


class LoopbackTokens:
    """Verifies tokens by the secrets of a data directory; a changed secret ends the tokens of the old one."""

    def __init__(self, folder: CredentialFolder) -> None:
        self._secrets = {role: watched_secret(folder, role) for role in CredentialRole}
        self._known: dict[str, _Known] = {}

    @property
    def contents(self) -> tuple[bytes, ...]:
        """The current secrets; a changed one is another object."""
        return tuple(watched.value for watched in self._secrets.values())

    def grant_of(self, token: str) -> Grant:
        """The grant of a token's subject, or one of PyJWT's errors."""
        known = self._known.get(token)
        if known and known.expires_at > now_seconds() and known.secret is self._secrets[known.role].value:
            return known.grant
        role = _role_of(token)
        secret = self._secrets[role].value
        options: Any = {"require": ["exp", "sub", "aud"]}
        claims = jwt.decode(token, secret, algorithms=[ALGORITHM], audience=AUDIENCE, options=options)
        grant = _grant(role, str(claims["sub"]))
        if len(self._known) >= MAX_KNOWN_TOKENS:
            self._known.clear()
        self._known[token] = _Known(role, grant, int(claims["exp"]), secret)
        return grant


def _role_of(token: str) -> CredentialRole:
    """The role whose secret is said to have signed a token."""
    try:
        return CredentialRole(jwt.get_unverified_header(token).get("kid", ""))
    except ValueError:
        raise jwt.InvalidKeyError("no role has this name") from None


def _grant(role: CredentialRole, principal: str) -> Grant:
    name, separator, agent_id = principal.partition("/")
    is_named = bool(agent_id) and len(principal) <= MAX_PRINCIPAL and "/" not in agent_id and agent_id.isprintable()
    if name != role or bool(separator) is not is_named:
        raise jwt.InvalidTokenError("the subject is neither the role nor an agent of it")
    powers = POWERS[role]
    return Grant(principal, powers.roles, frozenset({EVERY_PROJECT}), powers.capabilities)


def watched_secret(folder: CredentialFolder, role: CredentialRole) -> WatchedFiles[bytes]:
    """The secret of a role, read again when its file changes."""

    def read() -> bytes:
        try:
            return folder.read_secret(role)
        except UnusableCredentials as error:
            raise ValueError(str(error)) from None

    return WatchedFiles([folder.secret_file(role)], read)


def warn_if_insecure(settings: ServerSettings) -> None:
    """Say loudly that nobody is asked for a credential."""
    if settings.insecure_loopback and not settings.requires_credentials:
        sys.stderr.write(f"{INSECURE_WARNING}\n")


def loopback_credentials(settings: ServerSettings, data: Path) -> CredentialFolder | None:
    """Makes the credentials of a data directory; None where keys are configured, or none are asked for."""
    if settings.requires_credentials:
        return None
    if settings.insecure_loopback:
        return None
    folder = CredentialFolder.of(data)
    try:
        folder.make()
    except UnusableCredentials as error:
        raise invalid_field("POINTSMAN_DATA", str(error)) from None
    return folder
