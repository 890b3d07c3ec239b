"""A GitLab in this process: what happens is said in GitHub's words (`Pull`, `check_run`, `review`), and shown in its own."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

from tests.helpers.github import FakeGitHub, Pull
from tests.helpers.rest_schema import GITLAB

API = "/api/v4"
STATUSES = {None: "running", "success": "success", "failure": "failed", "timed_out": "failed"}
STATES = {"CHANGES_REQUESTED": "requested_changes", "APPROVED": "approved"}
GRACE = {"id": 7, "username": "grace", "name": "Grace", "state": "active", "web_url": "https://gitlab.test/grace"}
PUSHED = "2026-01-01T00:00:{:02}.000Z"


class FakeGitLab(FakeGitHub):
    """Answers what GitLab would about one project, each request and answer held against its description."""

    open_threads = False
    """Whether what reviewers say are threads, which nobody resolves."""

    def answer(self, method: str, path: str, query: str, content: bytes) -> tuple[int, Any]:
        """Status and answer of a request."""
        body, asked = json.loads(content) if content else None, dict(parse_qsl(query))
        short = path.removeprefix(API)
        self.problems += GITLAB.problems_of(method, short, asked, body)
        self.asked[f"{method} {re.sub('[0-9a-f]{40}|[0-9]+', 'N', short)}"] += 1
        status, answer = getattr(self, f"_{method.lower()}")(short.split("/", 3)[3], asked, body)
        operation = GITLAB.operation_of(method, short)
        if operation is None or status >= 400 or isinstance(answer, str):
            return int(status), answer
        whole = GITLAB.completed(operation, status, answer)
        self.problems += GITLAB.sampled_problems(operation, status, whole)
        return int(status), whole

    def _get(self, path: str, query: dict[str, str], _body: Any) -> tuple[int, Any]:
        if path == "merge_requests":
            branch = query["source_branch"]
            return 200, [self._shown(pull) for pull in reversed(self.pulls) if pull.branch == branch]
        if path.startswith("repository/commits/"):
            commit = path.split("/")[2]
            return 200, [_status(commit, run) for run in self.checks.get(commit, [])]
        if path.startswith("jobs/"):
            log = self.logs.get(int(path.split("/")[1]))
            return (404, {"message": "404 Not Found"}) if log is None else (200, log)
        pull = self._pull(path)
        return (404, {"message": "404 Not found"}) if pull is None else (200, self._part(pull, path.rpartition("/")[2]))

    def _part(self, pull: Pull, what: str) -> Any:
        if what == "notes":
            return [_note(number, text) for number, text in enumerate(pull.comments)]
        if what == "versions":
            return [
                {"id": at, "head_commit_sha": head, "created_at": PUSHED.format(at)} for at, head in self._heads(pull)
            ]
        if what == "reviewers":
            return [{"user": GRACE, "state": STATES[pull.reviews[-1]["state"]]}] if pull.reviews else []
        return self._threads(pull) if what == "discussions" else self._shown(pull)

    def _heads(self, pull: Pull) -> list[tuple[int, str]]:
        """Every head that reviews name, and the present one, oldest first."""
        named = [one["commit_id"] for one in pull.reviews]
        return list(enumerate(dict.fromkeys([*named, self.heads.get(pull.branch, "0" * 40)])))

    def _threads(self, pull: Pull) -> list[dict[str, Any]]:
        """What reviewers said, each at the time of the head that it is about."""
        when = {head: at for at, head in self._heads(pull)}
        notes = [
            {
                **_note(number, one["body"]),
                "created_at": PUSHED.format(when[one["commit_id"]]),
                "resolvable": self.open_threads,
                "resolved": False,
            }
            for number, one in enumerate(pull.reviews)
        ]
        return [{"id": f"{number:040}", "individual_note": True, "notes": [note]} for number, note in enumerate(notes)]

    def _post(self, path: str, _query: dict[str, str], body: Any) -> tuple[int, Any]:
        pull = self._pull(path)
        if pull is not None:
            pull.comments.append(body["body"])
            return 201, _note(len(pull.comments), body["body"])
        same = (body["source_branch"], body["target_branch"], "open")
        if any((one.branch, one.target, one.state) == same for one in self.pulls):
            return 409, {"message": ["Another open merge request already exists for this source branch: !1"]}
        number = len(self.pulls) + 1
        self.pulls.append(Pull(number, same[0], body["title"], body["description"], body["target_branch"]))
        return 201, self._shown(self.pulls[-1])

    def _put(self, path: str, _query: dict[str, str], body: Any) -> tuple[int, Any]:
        pull = self._pull(path)
        assert pull is not None
        pull.title, pull.body, pull.target = body["title"], body["description"], body["target_branch"]
        return 200, self._shown(pull)

    def _pull(self, path: str) -> Pull | None:
        number = re.match(r"merge_requests/([0-9]+)", path)
        return next((one for one in self.pulls if number and one.number == int(number[1])), None)

    def _shown(self, pull: Pull) -> dict[str, Any]:
        return {
            "iid": pull.number, "web_url": f"https://gitlab.test/o/r/-/merge_requests/{pull.number}", "title": pull.title,
            "state": "merged" if pull.merged else "opened" if pull.state == "open" else "closed", "author": GRACE,
            "sha": self.heads.get(pull.branch, "0" * 40), "description": pull.body, "source_branch": pull.branch,
            "target_branch": pull.target, "merge_commit_sha": pull.merged or None,
            "has_conflicts": pull.mergeable_state == "dirty",
        }  # fmt: skip


def _status(commit: str, run: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": run["id"], "sha": commit, "name": run["name"], "status": STATUSES[run["conclusion"]],
        "target_url": run["html_url"], "allow_failure": False,
    }  # fmt: skip


def _note(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "body": text, "author": GRACE, "resolvable": False}
