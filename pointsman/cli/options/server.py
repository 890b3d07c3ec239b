"""The options of commands that listen."""

from typing import Any

from pointsman.services.chassis.core.config import ServerSettings, load


def server_settings(port: int | None, *, insecure_loopback: bool) -> ServerSettings:
    """The settings of the server; an option that is given wins over its variable."""
    given: dict[str, Any] = {} if port is None else {"port": port}
    return load(ServerSettings, **given, **({"insecure_loopback": True} if insecure_loopback else {}))
