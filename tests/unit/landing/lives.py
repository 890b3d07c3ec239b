"""Lives of pull requests, written by a die: what the forge, the reviewers, the linked runs and kill -9 do."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.landing.forge import ForgeAway
from pointsman.landing.forge.credentials import Token
from pointsman.landing.forge.github import GitHub
from pointsman.landing.forge.gitlab import GitLab
from pointsman.landing.messages import Story
from pointsman.landing.proposals import Proposals
from pointsman.landing.steps import Step
from pointsman.landing.target import Target
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryState, Way
from pointsman.services.orchestrator.domain.landing.model import Terms, Work
from tests.helpers.github import FakeGitHub, check_run, review
from tests.helpers.gitlab import FakeGitLab
from tests.unit.landing.queues import Killed, MemoryClient, chance

ENTRY = "entry_1"
TURNS = 80
REST = (EntryState.LANDED, EntryState.ASKED)


def commit_of(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def fake_forge(fake: FakeGitHub) -> GitHub | GitLab:
    """The client of a fake forge, as its remote would choose it."""
    token = Token("ghp_secret_of_the_forge")
    is_gitlab = isinstance(fake, FakeGitLab)
    forge = GitLab("o/r", token, "https://gitlab.test/api/v4") if is_gitlab else GitHub("o", "r", token)
    forge.rest.session.mount("https://", fake)
    return forge


@dataclass(slots=True)
class Life:
    """One entry with its pull request."""

    seed: str
    fake: FakeGitHub = field(default_factory=FakeGitHub)
    client: Any = field(default_factory=MemoryClient)
    pushes: list[tuple[str, str]] = field(default_factory=list)
    kills: int = 0
    throws: int = 0
    runs: int = 0
    bases: int = 0
    woken_twice: bool = False
    happened: list[str] = field(default_factory=list)

    def throw(self, sides: int) -> int:
        self.throws += 1
        return chance(self.seed, self.throws, sides)

    @property
    def status(self) -> EntryState:
        status: EntryState = self.client.landing.entries[ENTRY].status
        return status

    def begin(self) -> None:
        terms = Terms("repository", "main", "origin", Way.PULL_REQUEST, title="Do it")
        work = Work("run_1", commit_of("base"), commit_of("work"))
        self.client.landing.submit(commands.Enqueue(ENTRY, terms.queue_id("local"), terms, work))

    def proposals(self, reach: Callable[[Step], None]) -> Proposals:
        async def push(_target: Target, branch: str, head: str) -> None:
            if self.fake.heads.get(branch) != head:
                self.pushes.append((branch, head))
                self.fake.heads[branch] = head
                for pull in self.fake.pulls:
                    pull.mergeable_state = "clean"

        forges: dict[str, Any] = {"origin": fake_forge(self.fake)}
        return Proposals(Path(), {}, reach=reach, forges=forges, push=push)

    def dies(self, _step: Step) -> None:
        if self.kills < 6 and self.throw(9) == 0:
            self.kills += 1
            raise Killed

    async def live(self, reach: Callable[[Step], None] | None = None) -> None:
        """Until the entry is merged, or asks a person."""
        self.begin()
        self.fake.lost = ["POST"] if self.throw(4) == 0 else []
        for _ in range(TURNS):
            if self.status in REST:
                return
            try:
                await self.turn(self.proposals(reach or self.dies))
            except (Killed, ForgeAway) as what:
                self.happened.append(type(what).__name__)

    async def turn(self, proposals: Proposals) -> None:
        if self.status is EntryState.WAITING:
            self.linked_run()
        elif self.status is EntryState.PROPOSED:
            self.happen()
            await self.look(proposals)
        else:
            await self.round(proposals)

    async def look(self, proposals: Proposals) -> None:
        """One look, or two at once where a webhook came twice."""
        looks = [proposals.look(self.client, "one", "repository") for _ in range(1 + self.woken_twice)]
        self.woken_twice = False
        for failed in filter(None, await asyncio.gather(*looks, return_exceptions=True)):
            raise failed

    async def round(self, proposals: Proposals) -> None:
        """What an integrator does with an entry that is to be proposed."""
        landing = self.client.landing
        held = await landing.take("one", [])
        (entry,) = held.entries
        if entry.state == pb.ENTRY_STATE_PROVING:
            base = commit_of(f"base {self.bases}")
            commit = commit_of(f"{entry.commit} on {base} {self.runs}")
            proven = pb.LandingCandidate(commit=commit, tip=commit, tree=commit, base=base, summary="42 tests")
            entry = await landing.report("one", entry, held.epoch, proven=proven)

        async def report(one: pb.Entry, **said: Any) -> pb.Entry:
            shown: pb.Entry = await landing.report("one", one, held.epoch, **said)
            return shown

        story = Story(entry, await self.client.runs.delivery("run_1"))
        await proposals.propose(Target(Path(), Path(), "main", "origin"), entry, story, report)

    def linked_run(self) -> None:
        landing = self.client.landing
        self.runs += 1
        run_id = f"run_{self.runs + 1}"
        landing.submit(commands.LinkStarted(ENTRY, run_id))
        done = self.throw(5) > 0
        work = Work(run_id, commit_of("base"), commit_of(run_id)) if done else None
        landing.submit(commands.LinkEnded(ENTRY, run_id, "COMPLETE" if done else "FAILED", work))

    def happen(self) -> None:
        """Something happens on the forge; sooner or later everything is green and somebody merges."""
        happenings = tuple(self.happenings())
        number = self.throw(len(happenings) + 4)
        name, act = happenings[number] if number < len(happenings) else happenings[0]
        self.happened.append(name)
        act()

    def move_base(self) -> None:
        """The target is at another commit, by a push or by force: the forge cannot merge what stands on the old one."""
        self.bases += 1
        self.fake.pulls[-1].mergeable_state = "dirty"

    def happenings(self) -> Iterator[tuple[str, Callable[[], None]]]:
        pull = self.fake.pulls[-1]
        head = self.fake.heads[pull.branch]
        checks = self.fake.checks

        def conclude(conclusion: str | None) -> Callable[[], None]:
            return lambda: checks.update({head: [check_run(self.throws, conclusion)]})

        def merge() -> None:
            pull.state, pull.merged = "closed", commit_of("merge")

        def set_state(name: str, value: str) -> Callable[[], None]:
            return lambda: setattr(pull, name, value)

        yield "merged", merge
        yield "green", conclude("success")
        yield "pending", conclude(None)
        yield "red", conclude("failure")
        yield "flaky", lambda: checks.update({head: [check_run(1, "success"), check_run(2, None)]})
        yield "review", lambda: pull.reviews.append(review(head, "rename it"))
        yield "approved", lambda: pull.reviews.append(review(head, "fine", "APPROVED"))
        yield "comment", lambda: pull.comments.append("nice")
        yield "dirty", self.move_base
        yield "forced base", self.move_base
        yield "closed", set_state("state", "closed")
        yield "woken twice", lambda: setattr(self, "woken_twice", True)
        yield "limited", lambda: self.fake.trouble.append((403, {"Retry-After": "1"}))
        yield "broken", lambda: self.fake.trouble.extend([(502, {}), (500, {})])
        yield "lost", lambda: self.fake.lost.append("GET")
        yield "unheard", lambda: self.fake.lost.append("POST")
