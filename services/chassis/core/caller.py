"""The caller of a command: principal, project, roles, trace and idempotency key."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

LOCAL = "local"
ENGINE = "engine"
EVERY_CAPABILITY = "*"
"""Grants every capability; only where it is written, never because the field is missing."""
EVERY_PROJECT = "*"
ENGINE_REQUESTS = "engine:"
"""The prefix of the service's own request ids; clients may not use it, because effect ids can be guessed."""


class Role(StrEnum):
    """The role of a principal, granted by access file or token."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AGENT = "agent"
    SERVICE = "service"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """One call: its principal and project, the trace it belongs to, and its idempotency key."""

    principal: str
    project: str
    roles: frozenset[Role] = frozenset(Role)
    traceparent: str = ""
    request_id: str = ""
    fingerprint: str = ""
    """A digest of the method and the whole request: the same request_id must come with the same one."""
    capabilities: frozenset[str] = frozenset()
    """The kinds of work that the principal may be handed, such as `code` or `verify`; their meaning is the context's."""
    projects: frozenset[str] = frozenset()
    """The projects that the principal has a part in, or EVERY_PROJECT."""

    @property
    def request_scope(self) -> str:
        """What ids that derive from its request ids derive from too, so that nobody else's request has the same one."""
        if self.request_id.startswith(ENGINE_REQUESTS):
            return self.project
        return f"{self.project}/{hashlib.sha256(self.principal.encode()).hexdigest()}"

    def may(self, capability: str) -> bool:
        """Whether the principal may be handed work of this kind."""
        return capability in self.capabilities or EVERY_CAPABILITY in self.capabilities


def engine_caller(project: str, traceparent: str, request_id: str) -> Caller:
    """The service itself, acting on a timer or on the answer to one of its effects."""
    own_id = ENGINE_REQUESTS + request_id
    return Caller(ENGINE, project, frozenset({Role.SERVICE}), traceparent, own_id, own_id)
