"""The credential of a forge: from the environment, a file or `gh auth token`; it is never stored or printed."""

import asyncio
import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

OWN_VARIABLE = "POINTSMAN_FORGE_TOKEN"
GITHUB_VARIABLES = (OWN_VARIABLE, "GH_TOKEN", "GITHUB_TOKEN")
GITLAB_VARIABLES = (OWN_VARIABLE, "GITLAB_TOKEN")
FILE_VARIABLE = "POINTSMAN_FORGE_TOKEN_FILE"
GH_SECONDS = 10.0
OTHERS = 0o077


class UnusableToken(Exception):
    """The file of the token can be read by others, or not at all; the message says the way out."""


@dataclass(frozen=True, slots=True)
class Token:
    """A forge's token; its text is in no representation of it."""

    value: str = field(repr=False)

    @property
    def header(self) -> str:
        """What git sends over HTTP."""
        return f"Authorization: Basic {base64.b64encode(f'x-access-token:{self.value}'.encode()).decode()}"


async def find_token(environment: Mapping[str, str], host: str = "github.com") -> Token | None:
    """GitHub's token, the first that is there: a variable, the file that a variable names, what `gh` has for the host."""
    return named_token(environment, GITHUB_VARIABLES) or await _ask_gh(host)


def named_token(environment: Mapping[str, str], variables: Sequence[str]) -> Token | None:
    """The token in the first of these variables, or in the file that a variable names."""
    for name in variables:
        if environment.get(name):
            return Token(environment[name].strip())
    return _read(Path(environment[FILE_VARIABLE])) if environment.get(FILE_VARIABLE) else None


def _read(path: Path) -> Token:
    try:
        if path.stat().st_mode & OTHERS:
            raise UnusableToken(f"{path} can be read by others; `chmod 600` it")
        return Token(path.read_text().strip())
    except OSError as error:
        raise UnusableToken(f"{FILE_VARIABLE}: {path}: {error.strerror}") from None


async def _ask_gh(host: str) -> Token | None:
    try:
        process = await asyncio.create_subprocess_exec(
            "gh", "auth", "token", "--hostname", host,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None
    try:
        async with asyncio.timeout(GH_SECONDS):
            said, _ = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return None
    value = said.decode(errors="replace").strip()
    return Token(value) if process.returncode == 0 and value else None


def git_variables(address: str, token: Token | None) -> dict[str, str]:
    """Variables that let git show a token to the origin of an HTTPS address, and to no other."""
    parts = urlsplit(address)
    if token is None or parts.scheme != "https" or not parts.hostname:
        return {}
    origin = f"https://{parts.netloc.rpartition('@')[2]}/"
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{origin}.extraHeader",
        "GIT_CONFIG_VALUE_0": token.header,
    }


def own_environment() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ
