"""Requests to a forge's REST API: pages, and what a refusal, a limit or a failure means."""

import asyncio
from collections.abc import Mapping
from typing import Any

import requests

from pointsman.landing.forge import ForgeAway, ForgeRefused, TokenRefused

TIMEOUT_SECONDS = 30.0
PAGE = 100
MAX_PAGES = 10
MAX_LOG_BYTES = 1_000_000
MAX_RETRY_SECONDS = 3600.0
DEFAULT_RETRY_SECONDS = 60.0
TOO_MANY = (403, 429)
NEW_TOKEN = "write a new one into the file that POINTSMAN_FORGE_TOKEN_FILE names, or start the integrator with one"


class Rest:
    """The resources of one repository on a forge."""

    def __init__(self, forge: str, repository: str, headers: Mapping[str, str]) -> None:
        self._forge, self._repository = forge, repository
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers.update({"User-Agent": "pointsman", **headers})

    async def pages(self, path: str, wanted: Mapping[str, str] | None = None, key: str = "") -> list[dict[str, Any]]:
        """The items of every page, bounded."""
        found: list[dict[str, Any]] = []
        for page in range(1, MAX_PAGES + 1):
            asked = {**(wanted or {}), "per_page": str(PAGE), "page": str(page)}
            answer = await self.json("GET", path, params=asked)
            items = answer[key] if key else answer
            found += items
            if len(items) < PAGE:
                break
        return found

    async def json(self, method: str, path: str, **options: Any) -> Any:
        """The answer to one request."""
        return (await self.send(method, path, **options)).json()

    async def send(self, method: str, path: str, **options: Any) -> requests.Response:
        """One request; a limit, a failure of the server or of the network may pass by itself."""
        address = f"{self._repository}{path}"
        try:
            answer = await asyncio.to_thread(
                self.session.request,
                method,
                address,
                timeout=TIMEOUT_SECONDS,
                allow_redirects=method == "GET",
                **options,
            )
        except requests.RequestException as error:
            raise ForgeAway(f"{method} {path}: {type(error).__name__}") from None
        if answer.status_code >= 500:
            raise ForgeAway(f"{method} {path}: HTTP {answer.status_code}")
        if answer.status_code in TOO_MANY and _is_limit(answer):
            raise ForgeAway(f"{method} {path}: the rate limit is reached", _retry_after(answer))
        if answer.status_code == 401:
            raise TokenRefused(f"{self._forge} does not take the token ({_said(answer)}): {NEW_TOKEN}")
        if answer.is_redirect:  # followed, a POST could become a GET
            raise ForgeRefused(
                f"{self._forge} says that the repository has moved ({answer.headers['Location'][:200]}): give the remote its "
                "new address with `git remote set-url`, then answer `retry`"
            )
        if not answer.ok:
            raise ForgeRefused(f"{self._forge} refuses {method} {path}: HTTP {answer.status_code} {_said(answer)}")
        return answer


def _is_limit(answer: requests.Response) -> bool:
    return (
        answer.status_code == 429
        or "Retry-After" in answer.headers
        or answer.headers.get("X-RateLimit-Remaining") == "0"
    )


def _retry_after(answer: requests.Response) -> float:
    said = answer.headers.get("Retry-After", "")
    return min(float(said), MAX_RETRY_SECONDS) if said.isdigit() else DEFAULT_RETRY_SECONDS


def _said(answer: requests.Response) -> str:
    try:
        return str(answer.json().get("message", ""))[:300]
    except (ValueError, AttributeError):
        return ""
