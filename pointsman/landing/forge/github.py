"""GitHub over its REST API."""

from collections.abc import Mapping, Sequence
from typing import Any

from pointsman.landing.forge import Check, CheckState, Draft, ForgeRefused, Request, Review
from pointsman.landing.forge.credentials import Token
from pointsman.landing.forge.rest import MAX_LOG_BYTES, Rest

API = "https://api.github.com"
VERSION = "2022-11-28"
_PASSED = frozenset({"success", "neutral", "skipped"})
_STATUS = {"success": CheckState.PASSED, "pending": CheckState.PENDING}
_VERDICTS = frozenset({"APPROVED", "CHANGES_REQUESTED", "DISMISSED"})


class GitHub:
    """One repository on GitHub."""

    def __init__(self, owner: str, name: str, token: Token | None, api: str = API) -> None:
        self._owner = owner
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": VERSION}
        if token is not None:
            headers["Authorization"] = f"Bearer {token.value}"
        self.rest = Rest("GitHub", f"{api.rstrip('/')}/repos/{owner}/{name}", headers)

    async def find(self, branch: str) -> Sequence[Request]:
        """The pull requests of a branch, whatever their state and target, newest first."""
        wanted = {"head": f"{self._owner}:{branch}", "state": "all", "sort": "created", "direction": "desc"}
        return [_request(item) for item in await self.rest.pages("/pulls", wanted)]

    async def open(self, draft: Draft) -> Request:
        """Opens a pull request."""
        body = {"title": draft.title, "body": draft.body, "head": draft.branch, "base": draft.target}
        return _request(await self.rest.json("POST", "/pulls", json=body))

    async def describe(self, number: int, draft: Draft) -> None:
        """Replaces title, body and target of a pull request."""
        body = {"title": draft.title, "body": draft.body, "base": draft.target}
        await self.rest.json("PATCH", f"/pulls/{number}", json=body)

    async def request(self, number: int) -> Request:
        """A pull request as it is now."""
        return _request(await self.rest.json("GET", f"/pulls/{number}"))

    async def checks(self, commit: str) -> Sequence[Check]:
        """Check runs, and the statuses of the older API."""
        runs = await self.rest.pages(f"/commits/{commit}/check-runs", {"filter": "latest"}, "check_runs")
        combined = await self.rest.json("GET", f"/commits/{commit}/status")
        return [*map(_check_run, runs), *map(_status, combined.get("statuses", ()))]

    async def log_of(self, check: Check) -> str:
        """What the job of a check printed; empty where nobody can read it."""
        if not check.job_id:
            return check.summary
        try:
            answer = await self.rest.send("GET", f"/actions/jobs/{check.job_id}/logs")
        except ForgeRefused:
            return check.summary
        return answer.content[-MAX_LOG_BYTES:].decode(errors="replace")

    async def reviews(self, number: int) -> Sequence[Review]:
        """The last review of every reviewer that says yes or no."""
        last: dict[str, Review] = {}
        for item in await self.rest.pages(f"/pulls/{number}/reviews"):
            if item.get("state") in _VERDICTS:
                review = _review(item)
                last[review.author] = review
        return tuple(last.values())

    async def comments(self, number: int) -> Sequence[str]:
        """The texts of a pull request's comments."""
        return [str(item.get("body") or "") for item in await self.rest.pages(f"/issues/{number}/comments")]

    async def comment(self, number: int, body: str) -> None:
        """Adds a comment."""
        await self.rest.json("POST", f"/issues/{number}/comments", json={"body": body})


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
        target=str(item["base"]["ref"]),
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
