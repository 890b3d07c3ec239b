"""What a principal may do: its roles, projects and capabilities."""

from pathlib import Path

import msgspec

from pointsman.services.chassis.core.caller import EVERY_CAPABILITY, EVERY_PROJECT, LOCAL, Role
from pointsman.services.chassis.core.errors import invalid_field


class Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One principal: its name (a certificate's URI, or its common name if it has none), its roles, projects and capabilities."""

    name: str
    roles: frozenset[Role]
    projects: frozenset[str]
    capabilities: frozenset[str] = frozenset()
    """The kinds of work that it may be handed, such as `code` or `verify`; without the field none."""


class AccessFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that POINTSMAN_SERVER_ACCESS names."""

    principals: tuple[Grant, ...]


LOCAL_GRANT = Grant(LOCAL, frozenset(Role), frozenset({EVERY_PROJECT}), frozenset({EVERY_CAPABILITY}))
"""Everybody, where no credentials are asked for."""


def read_access(path: Path) -> AccessFile:
    """Read the access file, or refuse it with the error."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=AccessFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise invalid_field("POINTSMAN_SERVER_ACCESS", f"{path}: {error}") from None
