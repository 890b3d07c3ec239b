"""GitLab over its REST API, version 4."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pointsman.landing.forge import Check, CheckState, Draft, ForgeRefused, Request, Review
from pointsman.landing.forge.credentials import Token
from pointsman.landing.forge.rest import MAX_LOG_BYTES, Rest

API_PATH = "/api/v4"
_PENDING = frozenset({"created", "waiting_for_resource", "preparing", "pending", "running", "scheduled", "canceling"})
_FAILED = frozenset({"failed", "canceled"})
ASKS = "requested_changes"


class GitLab:
    """One project on GitLab; its merge requests are the pull requests."""

    def __init__(self, project: str, token: Token | None, api: str) -> None:
        # not PRIVATE-TOKEN: that header would go along where a log is redirected to another host
        headers = {"Authorization": f"Bearer {token.value}"} if token is not None else {}
        self.rest = Rest("GitLab", f"{api.rstrip('/')}/projects/{quote(project, safe='')}", headers)

    async def find(self, branch: str) -> Sequence[Request]:
        """The merge requests of a branch, whatever their state and target, newest first."""
        wanted = {"source_branch": branch, "state": "all", "order_by": "created_at", "sort": "desc"}
        return [_request(item) for item in await self.rest.pages("/merge_requests", wanted)]

    async def open(self, draft: Draft) -> Request:
        """Opens a merge request."""
        body = {
            "source_branch": draft.branch,
            "target_branch": draft.target,
            "title": draft.title,
            "description": draft.body,
        }
        return _request(await self.rest.json("POST", "/merge_requests", json=body))

    async def describe(self, number: int, draft: Draft) -> None:
        """Replaces title, description and target of a merge request."""
        body = {"title": draft.title, "description": draft.body, "target_branch": draft.target}
        await self.rest.json("PUT", f"/merge_requests/{number}", json=body)

    async def request(self, number: int) -> Request:
        """A merge request as it is now."""
        return _request(await self.rest.json("GET", f"/merge_requests/{number}"))

    async def checks(self, commit: str) -> Sequence[Check]:
        """The newest status of every job of a commit's pipelines, and of other services."""
        return [check_of(item) for item in await self.rest.pages(f"/repository/commits/{commit}/statuses")]

    async def log_of(self, check: Check) -> str:
        """What the job of a check printed; empty where nobody can read it."""
        try:
            answer = await self.rest.send("GET", f"/jobs/{check.job_id}/trace")
        except ForgeRefused:
            return check.summary
        return answer.content[-MAX_LOG_BYTES:].decode(errors="replace")

    async def reviews(self, number: int) -> Sequence[Review]:
        """Reviewers that request changes, and threads that nobody has resolved.

        Both name no commit: they are about the version of the merge request that was there when they were written.
        """
        path = f"/merge_requests/{number}"
        threads = await self.rest.pages(f"{path}/discussions")
        reviewers = await self.rest.pages(f"{path}/reviewers")
        versions = _versions(await self.rest.pages(f"{path}/versions"))
        waiting = list(_open_threads(threads, versions))
        spoken = {review.author for review in waiting}
        return [*waiting, *(one for one in _asking(reviewers, threads, versions) if one.author not in spoken)]

    async def comments(self, number: int) -> Sequence[str]:
        """The texts of a merge request's notes."""
        return [str(item.get("body") or "") for item in await self.rest.pages(f"/merge_requests/{number}/notes")]

    async def comment(self, number: int, body: str) -> None:
        """Adds a note."""
        await self.rest.json("POST", f"/merge_requests/{number}/notes", json={"body": body})


Versions = Sequence[tuple[str, str]]
"""When a version came into being, and its head; newest first."""


def _versions(items: Sequence[Mapping[str, Any]]) -> Versions:
    return sorted(((str(one["created_at"]), str(one["head_commit_sha"])) for one in items), reverse=True)


def _head_at(versions: Versions, when: str) -> str:
    """The head that a merge request had at a time; times are all in UTC and of one form."""
    return next((head for since, head in versions if since <= when), "")


def _asking(
    reviewers: Sequence[Mapping[str, Any]], threads: Sequence[Mapping[str, Any]], versions: Versions
) -> Iterator[Review]:
    """What the reviewers say that request changes, as of their newest words; without any, of the present version."""
    for reviewer in reviewers:
        if reviewer.get("state") != ASKS:
            continue
        name = str((reviewer.get("user") or {}).get("username", ""))
        notes = [note for thread in threads for note in thread.get("notes", ()) if _author(note) == name]
        last = max((str(note["created_at"]) for note in notes), default="")
        commit = _head_at(versions, last) if last else next((head for _, head in versions), "")
        said = [str(note["body"]) for note in notes if not note.get("system")]
        yield Review(name, asks_for_changes=True, commit=commit, text=said[-1] if said else "requests changes")


def _open_threads(threads: Sequence[Mapping[str, Any]], versions: Versions) -> Iterator[Review]:
    """Threads that wait for an answer."""
    for thread in threads:
        notes = [note for note in thread.get("notes", ()) if note.get("resolvable") and not note.get("resolved")]
        if notes:
            said = "\n".join(str(note["body"]) for note in notes)
            commit = _head_at(versions, str(notes[-1]["created_at"]))
            yield Review(_author(notes[0]), asks_for_changes=True, commit=commit, text=said)


def _author(note: Mapping[str, Any]) -> str:
    return str((note.get("author") or {}).get("username", ""))


def _request(item: Mapping[str, Any]) -> Request:
    merged = item["state"] == "merged"
    commit = item.get("merge_commit_sha") or item.get("squash_commit_sha") or item.get("sha")
    return Request(
        int(item["iid"]),
        str(item["web_url"]),
        str(item.get("sha") or ""),
        str(item.get("description") or ""),
        is_open=item["state"] == "opened",
        merged_commit=str(commit or "") if merged else "",
        conflicts=bool(item.get("has_conflicts")),
        target=str(item["target_branch"]),
    )


def check_of(item: Mapping[str, Any]) -> Check:
    """A job as a check: skipped and manual jobs hold nothing up; a job that may fail has not failed."""
    status = str(item["status"])
    state = CheckState.PENDING if status in _PENDING else CheckState.PASSED
    if status in _FAILED and not item.get("allow_failure"):
        state = CheckState.FAILED
    said = str(item.get("description") or "")
    return Check(str(item["name"]), state, str(item.get("target_url") or ""), int(item["id"]), said)
