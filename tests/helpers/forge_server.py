"""A whole forge on loopback: bare repositories over HTTP, and GitHub's or GitLab's API below /api/ for one of them."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.helpers.git_http import GitBackend, git_over_http
from tests.helpers.github import LOGS, FakeGitHub
from tests.helpers.gitlab import FakeGitLab

API = "/api"


@dataclass(slots=True)
class Forge:
    """The repository `o/r` of a forge, where it is, and what its API was asked."""

    bare: Path
    address: str = ""
    github: FakeGitHub = field(default_factory=FakeGitHub)
    """Its API; a GitLab hears the same words."""
    credentials: set[str] = field(default_factory=set)
    """What requests showed as their credential."""

    @property
    def remote(self) -> str:
        """The address that git knows."""
        return f"{self.address}/o/r.git"

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which it is the user's forge."""
        if isinstance(self.github, FakeGitLab):
            return {"CI_SERVER_URL": self.address}
        return {"GITHUB_SERVER_URL": self.address, "GITHUB_API_URL": f"{self.address}{API}"}

    def branch(self, name: str) -> str:
        """The commit that a branch is at; empty where there is none."""
        return self.heads().get(name, "")

    def heads(self) -> dict[str, str]:
        """All branches with their commits."""
        listed = subprocess.run(
            ["git", "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"],
            cwd=self.bare, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return dict(line.rsplit(" ", 1) for line in listed.stdout.splitlines())


class _Handler(GitBackend):
    """Answers the API itself, and hands everything else to git."""

    forge: Forge

    def do_PATCH(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        asked = urlsplit(self.path)
        if not asked.path.startswith(f"{API}/"):
            super()._serve()
            return
        self.forge.credentials.add(self.headers.get("Authorization", ""))
        self.forge.github.heads = self.forge.heads()
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        path = asked.path if isinstance(self.forge.github, FakeGitLab) else asked.path.removeprefix(API)
        if path.startswith("/logs/"):
            self._answer(200, self.forge.github.logs[int(path.removeprefix("/logs/"))])
            return
        status, answer = self.forge.github.answer(self.command, path, asked.query, content)
        self._answer(status, answer)

    def _answer(self, status: int, answer: Any) -> None:
        sent = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", answer.replace(f"https://{LOGS}", f"{self.forge.address}{API}/logs"))
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


@contextmanager
def forge_of(repository: Path, root: Path, api: type[FakeGitHub] = FakeGitHub) -> Iterator[Forge]:
    """A forge, by default a GitHub, whose repository `o/r` is a bare clone of another one."""
    bare = root / "o" / "r.git"
    bare.parent.mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(repository), str(bare)], check=True)
    subprocess.run(["git", "config", "http.receivepack", "true"], cwd=bare, check=True)
    subprocess.run(["git", "config", "core.logAllRefUpdates", "always"], cwd=bare, check=True)
    forge = Forge(bare, github=api())
    with git_over_http(root, _Handler, forge=forge) as address:
        forge.address = address
        yield forge
