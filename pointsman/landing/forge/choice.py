"""Which forge a remote belongs to."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from pointsman.landing.forge import Forge
from pointsman.landing.forge.credentials import Token, find_token
from pointsman.landing.forge.github import API, GitHub
from pointsman.landing.forge.plain import PlainRemote

API_VARIABLE, SERVER_VARIABLE = "GITHUB_API_URL", "GITHUB_SERVER_URL"
"""As GitHub's own tools name them; set both for a server of your own."""
_SHORT = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!/)(.+)")


async def forge_of(address: str, environment: Mapping[str, str]) -> Forge:
    """GitHub for an address on GitHub or on the server that the environment names, else a plain remote."""
    host, path = host_and_path(address)
    own = urlsplit(environment.get(SERVER_VARIABLE, "https://github.com")).netloc
    parts = path.removesuffix(".git").strip("/").split("/")
    if host and host == own and len(parts) == 2:
        token = await find_token(environment, host)
        return GitHub(parts[0], parts[1], token, environment.get(API_VARIABLE, API))
    return PlainRemote(without_secrets(address))


async def token_for(address: str, environment: Mapping[str, str]) -> Token | None:
    """The token for an address on a known forge; none for any other, which must not see it."""
    own = urlsplit(environment.get(SERVER_VARIABLE, "https://github.com")).netloc
    host, _ = host_and_path(address)
    return await find_token(environment, host) if host and host == own else None


def host_and_path(address: str) -> tuple[str, str]:
    """Host and path of a git address, also in the short form of SSH."""
    parts = urlsplit(address)
    if parts.scheme and parts.netloc:
        return parts.netloc.rpartition("@")[2], parts.path
    short = _SHORT.fullmatch(address)
    return (short[1], short[2]) if short else ("", "")


def without_secrets(address: str) -> str:
    """An address without a name and a password in it."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if parts.netloc else address
