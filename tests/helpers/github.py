"""A GitHub in this process: the documented endpoints that are used, each request held against its description."""

import io
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from requests.adapters import BaseAdapter

from tests.helpers.rest_schema import GITHUB

LOGS = "logs.github.test"
"""Where logs are: another place than the API, which sends whoever asks there."""


@dataclass(slots=True)
class Pull:
    """A pull request."""

    number: int
    branch: str
    title: str
    body: str
    target: str = "main"
    state: str = "open"
    merged: str = ""
    mergeable_state: str = "clean"
    reviews: list[dict[str, Any]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


@dataclass
class FakeGitHub(BaseAdapter):
    """Answers what GitHub would; `trouble` is what the next requests meet instead."""

    heads: dict[str, str] = field(default_factory=dict)
    """Branches that were pushed, and where they are."""
    pulls: list[Pull] = field(default_factory=list)
    checks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    logs: dict[int, str] = field(default_factory=dict)
    trouble: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Methods whose answer gets lost after they were done."""
    asked: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def close(self) -> None:
        """Nothing is open."""

    def send(self, request: Any, **_options: Any) -> requests.Response:  # type: ignore[override]
        if self.trouble:
            status, headers = self.trouble.pop(0)
            return _response(request, status, {"message": "not now"}, headers)
        parts = urlsplit(request.url)
        if parts.netloc == LOGS:
            shown = any("secret" in str(value) for value in request.headers.values())
            self.problems += ["the token was shown to the place of the logs"] if shown else []
            return _response(request, 200, self.logs[int(parts.path.strip("/"))])
        status, answer = self.answer(request.method, parts.path, parts.query, request.body or b"")
        if request.method in self.lost:
            self.lost.remove(request.method)
            raise requests.ConnectionError("the answer got lost")
        return _response(request, status, answer)

    def answer(self, method: str, path: str, query: str, content: bytes) -> tuple[int, Any]:
        """Status and answer of a request, which is held against its description."""
        body, asked = json.loads(content) if content else None, dict(parse_qsl(query))
        self.problems += GITHUB.problems_of(method, path, asked, body)
        self.asked[f"{method} {re.sub('[0-9a-f]{40}|[0-9]+', 'N', path)}"] += 1
        status, answer = getattr(self, f"_{method.lower()}")(path.split("/", 4)[4], asked, body)
        operation = GITHUB.operation_of(method, path)
        if operation is None or status >= 400:
            return int(status), answer
        whole = GITHUB.completed(operation, status, answer)
        self.problems += GITHUB.sampled_problems(operation, status, whole)
        return int(status), whole

    def _get(self, path: str, query: dict[str, str], _body: Any) -> tuple[int, Any]:
        if path == "pulls":
            branch = query["head"].split(":", 1)[1]
            return 200, [self._shown(pull) for pull in reversed(self.pulls) if pull.branch == branch]
        if path.startswith("commits/"):
            return self._commit(*path.split("/")[1:3])
        if path.startswith("actions/jobs/"):
            log = self.logs.get(int(path.split("/")[2]))
            return (404, {"message": "Not Found"}) if log is None else (302, f"https://{LOGS}/{path.split('/')[2]}")
        pull = self._pull(path)
        return (404, {"message": "Not Found"}) if pull is None else (200, self._part(pull, path.rpartition("/")[2]))

    def _part(self, pull: Pull, what: str) -> Any:
        comments = [{"id": number, "body": text} for number, text in enumerate(pull.comments)]
        return {"reviews": pull.reviews, "comments": comments}.get(what, self._shown(pull))

    def _post(self, path: str, _query: dict[str, str], body: Any) -> tuple[int, Any]:
        pull = self._pull(path)
        if pull is not None:
            pull.comments.append(body["body"])
            return 201, {"id": len(pull.comments), "body": body["body"]}
        same = (body["head"], body["base"], "open")
        if any((one.branch, one.target, one.state) == same for one in self.pulls):
            return 422, {"message": "A pull request already exists"}
        self.pulls.append(Pull(len(self.pulls) + 1, body["head"], body["title"], body["body"], body["base"]))
        return 201, self._shown(self.pulls[-1])

    def _patch(self, path: str, _query: dict[str, str], body: Any) -> tuple[int, Any]:
        pull = self._pull(path)
        assert pull is not None
        pull.title, pull.body, pull.target = body["title"], body["body"], body["base"]
        return 200, self._shown(pull)

    def _commit(self, commit: str, what: str) -> tuple[int, Any]:
        if what == "status":
            return 200, {"state": "success", "statuses": [], "total_count": 0}
        runs = self.checks.get(commit, [])
        return 200, {"total_count": len(runs), "check_runs": runs}

    def _pull(self, path: str) -> Pull | None:
        number = re.match(r"(?:pulls|issues)/([0-9]+)", path)
        return next((one for one in self.pulls if number and one.number == int(number[1])), None)

    def _shown(self, pull: Pull) -> dict[str, Any]:
        return {
            "number": pull.number, "html_url": f"https://github.test/o/r/pull/{pull.number}", "state": pull.state,
            "head": {"sha": self.heads.get(pull.branch, "0" * 40), "ref": pull.branch}, "body": pull.body,
            "title": pull.title, "base": {"ref": pull.target},
            "merged": bool(pull.merged), "merged_at": "2026-01-01T00:00:00Z" if pull.merged else None,
            "merge_commit_sha": pull.merged or None, "mergeable_state": pull.mergeable_state,
        }  # fmt: skip


def check_run(number: int, conclusion: str | None) -> dict[str, Any]:
    """A check run; without a conclusion it is still at work."""
    status = "completed" if conclusion else "in_progress"
    return {
        "id": number,
        "name": "ci",
        "status": status,
        "conclusion": conclusion,
        "html_url": "https://ci.test",
        "output": {"title": None, "summary": None, "text": None},
    }


def review(commit: str, text: str, state: str = "CHANGES_REQUESTED") -> dict[str, Any]:
    """A review of a commit."""
    user = {"login": "grace"}
    return {
        "id": 1,
        "user": user,
        "body": text,
        "state": state,
        "html_url": "https://github.test/r",
        "commit_id": commit,
    }


def _response(request: Any, status: int, answer: Any, headers: dict[str, str] | None = None) -> requests.Response:
    response = requests.Response()
    response.status_code, response.request, response.url = status, request, request.url
    response.headers.update(headers or ({"Location": answer} if status == 302 else {}))
    response.raw = io.BytesIO(answer.encode() if isinstance(answer, str) else json.dumps(answer).encode())
    return response
