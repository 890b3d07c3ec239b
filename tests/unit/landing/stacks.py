"""A run of several tasks whose work is proposed as a stack: a real remote, a fake forge, and a person who merges."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pointsman.api.handoff.v1.delivery_pb2 import Deliverable, Delivery
from pointsman.api.handoff.v1.handoff_pb2 import Claim
from pointsman.landing.proposals import Proposals, push_own_branch
from pointsman.landing.steps import Step
from pointsman.landing.target import Target
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryState, Way
from pointsman.services.orchestrator.domain.landing.model import Entry, Terms, Work, layer_id_above
from tests.helpers.github import FakeGitHub, Pull
from tests.unit.landing.lives import fake_forge
from tests.unit.landing.queues import Killed, Scene, git, scene

FIRST = "entry_001"
BEGIN = "".join(f"line {number}\n" for number in range(9))


def said(upto: int, extra: str = "") -> str:
    """One file that every layer changes, each next to the line of the layer below."""
    return BEGIN + "".join(f"task {number}\n" for number in range(1, upto + 1)) + extra


@dataclass(slots=True)
class StackScene:
    """Three tasks that build on each other, delivered as a stack."""

    there: Scene
    bare: Path
    fake: FakeGitHub
    pushes: list[tuple[str, str]] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)

    def begin(self, tasks: int = 3) -> None:
        base = commit = git(self.there.folder, "rev-parse", "HEAD")
        for number in range(1, tasks + 1):
            message = f"Task {number}\n\nPointsman-Run: run_1\nPointsman-Task: T{number}"
            commit = self.commit(commit, said(number), message, {f"own{number}": "x\n"})
            self.commits.append(commit)
        self.there.client.runs.delivery = self.delivery
        terms = Terms("repository", "main", "origin", Way.PULL_REQUEST, title="All of it", stack=True)
        work = Work("run_1", base, commit)
        self.there.landing.submit(commands.Enqueue(FIRST, terms.queue_id("local"), terms, work))

    async def delivery(self, run_id: str) -> Delivery:
        """What the run delivered, task by task."""
        items = [
            Deliverable(
                task_id=f"T{number}", statement=f"Do task {number}", claims=[Claim(id="C1", statement=f"C{number}")]
            )
            for number, _ in enumerate(self.commits, 1)
        ]
        return Delivery(run_id=run_id, deliverables=items)

    def commit(self, parent: str, shared: str, message: str, files: dict[str, str] | None = None) -> str:
        """A commit that names its task, without a working tree."""
        made = self.there.work(0, {"shared": shared, **(files or {})}, parent)
        tree = git(self.there.folder, "rev-parse", f"{made}^{{tree}}")
        return git(self.there.folder, "commit-tree", tree, "-p", parent, "-m", message)

    def entries(self) -> list[Entry]:
        """The layers that are there, the lowest first."""
        found, entry_id = [], FIRST
        while entry_id in self.there.landing.entries:
            found.append(self.there.landing.entries[entry_id])
            entry_id = layer_id_above(entry_id)
        return found

    def states(self) -> list[EntryState]:
        return [entry.status for entry in self.entries()]

    def pull(self, number: int) -> Pull:
        return next(one for one in self.fake.pulls if one.branch == f"pointsman/run_1-{number}")

    def proposals(self) -> Proposals:
        async def push(target: Target, branch: str, head: str) -> None:
            await push_own_branch(target, branch, head)
            if self.fake.heads.get(branch) != head:
                self.pushes.append((branch, head))
            self.fake.heads[branch] = head

        forges: dict[str, Any] = {"origin": fake_forge(self.fake)}
        return Proposals(self.there.folder, {}, forges=forges, push=push)

    async def settle(self, reach: Callable[[Step], None] = lambda _step: None) -> int:
        """Rounds and looks until nothing moves any more; how often an integrator was killed."""
        killed = 0
        for _ in range(20):
            before = len(self.there.landing.events)
            try:
                self.there.proposals = self.proposals()
                killed += await self.there.settle(reach)
                await self.there.integrator(reach).look(self.there.client)
            except Killed:
                killed += 1
                continue
            if len(self.there.landing.events) == before:
                return killed
        raise AssertionError("it does not come to rest")

    def merge(self, number: int, how: str) -> None:
        """A person merges a pull request on the forge: by a merge commit, or as one new commit."""
        pull = self.pull(number)
        head, onto = git(self.bare, "rev-parse", pull.branch), git(self.bare, "rev-parse", pull.target)
        tree = git(self.bare, "merge-tree", "--write-tree", onto, head)
        parents = ("-p", onto, "-p", head) if how == "merge" else ("-p", onto)
        made = git(self.bare, "commit-tree", tree, *parents, "-m", f"{how} {number}")
        git(self.bare, "update-ref", f"refs/heads/{pull.target}", made)
        pull.state, pull.merged = "closed", made

    def repair(self, number: int) -> None:
        """The linked run of a layer adds a line to what was proposed."""
        entry = self.entries()[number - 1]
        ((_, started),) = [one for one in self.there.landing.started if one[0] == entry.entry_id][-1:]
        run_id = f"run_{10 * number + len(entry.links) + 1}"
        self.there.landing.submit(commands.LinkStarted(entry.entry_id, run_id))
        clone = next((self.there.root / "repositories").iterdir())
        git(self.there.folder, "fetch", "-q", str(clone), started.base_commit)
        before = git(self.there.folder, "show", f"{started.base_commit}:shared")
        commit = self.commit(started.base_commit, before.replace("line 0", f"repaired {number}") + "\n", "repair")
        work = Work(run_id, started.base_commit, commit)
        self.there.landing.submit(commands.LinkEnded(entry.entry_id, run_id, "COMPLETE", work))

    def main(self, name: str = "shared") -> str:
        return git(self.bare, "show", f"main:{name}")


def stack_scene(folder: Path, fake: FakeGitHub, tasks: int = 3) -> StackScene:
    """The stack before an integrator has seen it."""
    there = scene(folder, {"shared": BEGIN})
    there.remote = "origin"
    bare = folder / "remote.git"
    git(folder, "clone", "-q", "--bare", str(there.folder), str(bare))
    git(there.folder, "remote", "add", "origin", str(bare))
    made = StackScene(there, bare, fake)
    made.begin(tasks)
    return made
