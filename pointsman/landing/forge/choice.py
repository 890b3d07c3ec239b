"""Which forge a remote belongs to."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from pointsman.landing.forge import Forge
from pointsman.landing.forge.credentials import GITLAB_VARIABLES, Token, find_token, named_token
from pointsman.landing.forge.github import API, GitHub
from pointsman.landing.forge.gitlab import API_PATH, GitLab
from pointsman.landing.forge.plain import PlainRemote

API_VARIABLE, SERVER_VARIABLE = "GITHUB_API_URL", "GITHUB_SERVER_URL"
GITLAB_API_VARIABLE, GITLAB_SERVER_VARIABLE = "CI_API_V4_URL", "CI_SERVER_URL"
"""As the forges' own tools name them; they are for a server of your own."""
GITHUB_SERVER, GITLAB_SERVER = "https://github.com", "https://gitlab.com"
_SHORT = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!/)(.+)")


async def forge_of(address: str, environment: Mapping[str, str]) -> Forge:
    """The forge of an address on GitHub, GitLab or a server that the environment names, else a plain remote."""
    host, path = host_and_path(address)
    parts = path.removesuffix(".git").strip("/").split("/")
    if _is_on(host, environment, SERVER_VARIABLE, GITHUB_SERVER) and len(parts) == 2:
        token = await token_for(address, environment)
        return GitHub(parts[0], parts[1], token, environment.get(API_VARIABLE, API))
    if _is_on(host, environment, GITLAB_SERVER_VARIABLE, GITLAB_SERVER) and len(parts) >= 2:
        server = environment.get(GITLAB_SERVER_VARIABLE, GITLAB_SERVER).rstrip("/")
        api = environment.get(GITLAB_API_VARIABLE, f"{server}{API_PATH}")
        return GitLab("/".join(parts), await token_for(address, environment), api)
    return PlainRemote(without_secrets(address))


async def token_for(address: str, environment: Mapping[str, str]) -> Token | None:
    """The token for an address on a known forge; none for any other, which must not see it."""
    host, _ = host_and_path(address)
    if _is_on(host, environment, SERVER_VARIABLE, GITHUB_SERVER):
        return await find_token(environment, host)
    if _is_on(host, environment, GITLAB_SERVER_VARIABLE, GITLAB_SERVER):
        return named_token(environment, GITLAB_VARIABLES)
    return None


def _is_on(host: str, environment: Mapping[str, str], variable: str, server: str) -> bool:
    return bool(host) and host == urlsplit(environment.get(variable, server)).netloc


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
