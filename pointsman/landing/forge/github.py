"""GitHub over its REST API."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import requests

from pointsman.landing.forge import Check, CheckState, Draft, ForgeAway, ForgeRefused, Request, Review
from pointsman.landing.forge.credentials import Token

API = "https://api.github.com"
VERSION = "2022-11-28"
TIMEOUT_SECONDS = 30.0
PAGE = 100
MAX_PAGES = 10
MAX_LOG_BYTES = 1_000_000
MAX_RETRY_SECONDS = 3600.0
DEFAULT_RETRY_SECONDS = 60.0
TOO_MANY = (403, 429)
_PASSED = frozenset({"success", "neutral", "skipped"})
_STATUS = {"success": CheckState.PASSED, "pending": CheckState.PENDING}
_VERDICTS = frozenset({"APPROVED", "CHANGES_REQUESTED", "DISMISSED"})


class GitHub:
    """One repository on GitHub."""

    def __init__(self, owner: str, name: str, token: Token | None, api: str = API) -> None:
        self._owner = owner
        self._repository = f"/repos/{owner}/{name}"
        self._api = api.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update(
            {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": VERSION, "User-Agent": "pointsman"}
        )
        if token is not None:
            self._session.headers["Authorization"] = f"Bearer {token.value}"

    async def find(self, branch: str, target: str) -> Sequence[Request]:
        """The pull requests of a branch, whatever their state, newest first."""
        wanted = {
            "head": f"{self._owner}:{branch}",
            "base": target,
            "state": "all",
            "sort": "created",
            "direction": "desc",
        }
        return [_request(item) for item in await self._pages("/pulls", wanted)]

    async def open(self, draft: Draft) -> Request:
        """Opens a pull request."""
        body = {"title": draft.title, "body": draft.body, "head": draft.branch, "base": draft.target}
        return _request(await self._json("POST", "/pulls", json=body))

    async def describe(self, number: int, title: str, body: str) -> None:
        """Replaces title and body of a pull request."""
        await self._json("PATCH", f"/pulls/{number}", json={"title": title, "body": body})

    async def request(self, number: int) -> Request:
        """A pull request as it is now."""
        return _request(await self._json("GET", f"/pulls/{number}"))

    async def checks(self, commit: str) -> Sequence[Check]:
        """Check runs, and the statuses of the older API."""
        runs = await self._pages(f"/commits/{commit}/check-runs", {"filter": "latest"}, "check_runs")
        combined = await self._json("GET", f"/commits/{commit}/status")
        return [*map(_check_run, runs), *map(_status, combined.get("statuses", ()))]

    async def log_of(self, check: Check) -> str:
        """What the job of a check printed; empty where nobody can read it."""
        if not check.job_id:
            return check.summary
        try:
            answer = await self._send("GET", f"/actions/jobs/{check.job_id}/logs")
        except ForgeRefused:
            return check.summary
        return answer.content[-MAX_LOG_BYTES:].decode(errors="replace")

    async def reviews(self, number: int) -> Sequence[Review]:
        """The last review of every reviewer that says yes or no."""
        last: dict[str, Review] = {}
        for item in await self._pages(f"/pulls/{number}/reviews"):
            if item.get("state") in _VERDICTS:
                review = _review(item)
                last[review.author] = review
        return tuple(last.values())

    async def comments(self, number: int) -> Sequence[str]:
        """The texts of a pull request's comments."""
        return [str(item.get("body") or "") for item in await self._pages(f"/issues/{number}/comments")]

    async def comment(self, number: int, body: str) -> None:
        """Adds a comment."""
        await self._json("POST", f"/issues/{number}/comments", json={"body": body})

    async def _pages(self, path: str, wanted: Mapping[str, str] | None = None, key: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for page in range(1, MAX_PAGES + 1):
            asked = {**(wanted or {}), "per_page": str(PAGE), "page": str(page)}
            answer = await self._json("GET", path, params=asked)
            items = answer[key] if key else answer
            found += items
            if len(items) < PAGE:
                break
        return found

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        return (await self._send(method, path, **options)).json()

    async def _send(self, method: str, path: str, **options: Any) -> requests.Response:
        """One request; a limit, a failure of the server or of the network may pass by itself."""
        address = f"{self._api}{self._repository}{path}"
        try:
            answer = await asyncio.to_thread(self._session.request, method, address, timeout=TIMEOUT_SECONDS, **options)
        except requests.RequestException as error:
            raise ForgeAway(f"{method} {path}: {type(error).__name__}") from None
        if answer.status_code >= 500:
            raise ForgeAway(f"{method} {path}: HTTP {answer.status_code}")
        if answer.status_code in TOO_MANY and _is_limit(answer):
            raise ForgeAway(f"{method} {path}: the rate limit is reached", _retry_after(answer))
        if not answer.ok:
            raise ForgeRefused(f"GitHub refuses {method} {path}: HTTP {answer.status_code} {_said(answer)}")
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


def _request(item: Mapping[str, Any]) -> Request:
    merged = bool(item.get("merged") or item.get("merged_at"))
    return Request(
        int(item["number"]),
        str(item["html_url"]),
        str(item["head"]["sha"]),
        str(item.get("body") or ""),
        is_open=item["state"] == "open",
        merged_commit=str(item.get("merge_commit_sha") or item["head"]["sha"]) if merged else "",
        conflicts=item.get("mergeable_state") == "dirty",
    )


def _check_run(item: Mapping[str, Any]) -> Check:
    conclusion = item.get("conclusion")
    state = CheckState.PENDING if item.get("status") != "completed" else CheckState.FAILED
    if state is CheckState.FAILED and conclusion in _PASSED:
        state = CheckState.PASSED
    output = item.get("output") or {}
    summary = "\n".join(str(output.get(key) or "") for key in ("title", "summary", "text")).strip()
    return Check(str(item["name"]), state, str(item.get("html_url") or ""), int(item["id"]), summary)


def _status(item: Mapping[str, Any]) -> Check:
    state = _STATUS.get(str(item.get("state")), CheckState.FAILED)
    url, said = str(item.get("target_url") or ""), str(item.get("description") or "")
    return Check(str(item["context"]), state, url, summary=said)


def _review(item: Mapping[str, Any]) -> Review:
    return Review(
        str((item.get("user") or {}).get("login", "")),
        item["state"] == "CHANGES_REQUESTED",
        str(item.get("commit_id") or ""),
        str(item.get("body") or ""),
        str(item.get("html_url") or ""),
    )
