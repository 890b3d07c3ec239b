"""Pull requests of entries: pushed and opened once, and followed until they are merged or somebody is asked."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointsman._shared.excerpt import excerpt
from pointsman._shared.git import GitFailed, git, text
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.client import CallFailed, Client, TerminalError
from pointsman.landing.forge import Check, CheckState, Draft, Forge, ForgeAway, ForgeRefused, Request, TokenRefused
from pointsman.landing.forge.choice import forge_of, token_for
from pointsman.landing.forge.credentials import UnusableToken, git_variables, own_environment
from pointsman.landing.layers import branch_of
from pointsman.landing.messages import Story
from pointsman.landing.permissions import OWN_BRANCHES
from pointsman.landing.request_body import RequestContent, marker, request_body, request_title
from pointsman.landing.round import Report
from pointsman.landing.steps import Reach, Step
from pointsman.landing.target import Blocked, Target

FOLLOW_SECONDS = 30.0
LISTEN_SECONDS = 20.0
GATHER_SECONDS = 1.0
"""How long news of a forge are gathered: one event sends several webhooks."""
CLOSED_TEXT = "the pull request was closed without being merged"
MAX_LOG = 12_000
MAX_FAILED = 5
FOLLOWED = (pb.ENTRY_STATE_PROPOSED, pb.ENTRY_STATE_WAITING, pb.ENTRY_STATE_ASKED)

PushBranch = Callable[[Target, str, str], Awaitable[None]]
"""Pushes a branch of ours to the target's remote."""
MergedCommit = Callable[[pb.Entry], Awaitable[str]]

log = logging.getLogger("pointsman.integrator")


@dataclass(slots=True)
class Proposals:
    """Proposes entries on the forges of their remotes."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=own_environment, repr=False)
    reach: Reach = lambda _step: None
    follow_seconds: float = FOLLOW_SECONDS
    gather_seconds: float = GATHER_SECONDS
    forges: dict[str, Forge] = field(default_factory=dict)
    push: PushBranch = field(default_factory=lambda: push_own_branch)
    merged_commit: MergedCommit | None = None
    """Looks into the target itself: somebody may merge without the forge."""

    async def forge(self, remote: str) -> Forge:
        """The forge of a remote."""
        if remote not in self.forges:
            address = await text(self.folder, "remote", "get-url", remote)
            try:
                self.forges[remote] = await forge_of(address, self.environment)
            except UnusableToken as error:
                raise Blocked(str(error)) from None
        return self.forges[remote]

    async def git_secrets(self, remote: str) -> dict[str, str]:
        """What git shows to the remote; to the origin of a known forge only."""
        if not remote:
            return {}
        try:
            address = await text(self.folder, "remote", "get-url", remote)
        except GitFailed:
            return {}
        try:
            return git_variables(address, await token_for(address, self.environment))
        except UnusableToken as error:
            raise Blocked(str(error)) from None

    async def propose(self, target: Target, entry: pb.Entry, story: Story, report: Report) -> None:
        """Pushes the candidate to a branch of ours and opens its pull request, if there is none yet.

        ForgeAway leaves the entry as it is: the next integrator that takes it looks for what was done.
        """
        try:
            said = await self._propose(target, entry, story)
        except (Blocked, ForgeRefused) as error:
            self._forget_token(entry, error)
            await report(entry, found=pb.LandingFinding(kind=pb.FINDING_KIND_BLOCKED, text=str(error)))
            return
        except ForgeAway as away:
            await report(entry, held_up=_held_up(away))
            raise
        await report(entry, **said)
        self.reach(Step.REQUEST_REPORTED)

    def _forget_token(self, entry: pb.Entry, error: Exception) -> None:
        """A token that is not taken is read anew the next time."""
        if isinstance(error, TokenRefused):
            self.forges.pop(entry.terms.remote, None)

    async def _propose(self, target: Target, entry: pb.Entry, story: Story) -> Mapping[str, pb.Proposal | pb.AtCommit]:
        if not target.remote:
            raise Blocked("a pull request needs a remote: enqueue it with --push REMOTE")
        forge, branch, head = await self.forge(target.remote), branch_of(entry), entry.candidate.commit
        request = await self._find(forge, entry, branch)
        self.reach(Step.REQUEST_LOOKED_UP)
        if request is not None and request.merged_commit:  # by a person, while it was proven again
            return {"merged": pb.AtCommit(commit=request.merged_commit)}
        await self.push(target, branch, head)
        self.reach(Step.BRANCH_PUSHED)
        body = request_body(RequestContent(entry, story.delivery, story.attempts, story.trace))
        draft = Draft(request_title(entry), body, branch, entry.stack.on_branch or entry.terms.target)
        if request is None:
            request = await forge.open(draft)
            self.reach(Step.REQUEST_OPENED)
        elif (request.body, request.target) != (body, draft.target):
            await forge.describe(request.number, draft)
            self.reach(Step.REQUEST_DESCRIBED)
        if entry.proposal.number:
            await self._say_once(forge, request.number, entry, head)
        return {"proposed": pb.Proposal(number=request.number, url=request.url, branch=branch, head=head)}

    async def _find(self, forge: Forge, entry: pb.Entry, branch: str) -> Request | None:
        """The entry's own pull request, found by its marker: open, or merged into the target."""
        own = [one for one in await forge.find(branch) if marker(entry.id) in one.body]
        return next((one for one in own if one.is_open or _is_landed(entry, one)), None)

    async def _say_once(self, forge: Forge, number: int, entry: pb.Entry, head: str) -> None:
        """Says what changed since the last push; looked up by its own marker first."""
        mark = f"<!-- pointsman: {entry.id} {head} -->"
        said = any(mark in comment for comment in await forge.comments(number))
        self.reach(Step.COMMENT_LOOKED_UP)
        if not said:
            runs = ", ".join(f"`{link.run_id}`" for link in entry.links)
            await forge.comment(number, f"Proven again at `{head[:12]}`, after {runs or 'the target moved'}.\n\n{mark}")
            self.reach(Step.COMMENTED)

    async def follow(self, client: Client, agent_id: str, repository_id: str, until: asyncio.Event) -> None:
        """Looks at open pull requests again and again, and as soon as a webhook asks for it."""
        pause, is_held_off, woken = self.follow_seconds, False, asyncio.Event()
        listening = asyncio.create_task(_listen(client, agent_id, woken, self.gather_seconds))
        try:
            while not until.is_set():
                # a forge that asks to wait is not asked earlier, whatever it sends
                await _rest(pause, (until,) if is_held_off else (until, woken))
                woken.clear()
                pause, is_held_off = await self._paused_after_look(client, agent_id, repository_id)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _paused_after_look(self, client: Client, agent_id: str, repository_id: str) -> tuple[float, bool]:
        """Looks once; how long to wait until the next time, and whether the forge asks for that."""
        try:
            await self.look(client, agent_id, repository_id)
        except ForgeAway as away:
            log.warning("the pull requests are looked at later: %s", away)
            return max(self.follow_seconds, away.retry_after_seconds), away.retry_after_seconds > 0
        except (CallFailed, GitFailed, ForgeRefused, Blocked) as error:
            log.warning("the pull requests could not be looked at: %s", error)
        return self.follow_seconds, False

    async def look(self, client: Client, agent_id: str, repository_id: str) -> None:
        """Looks once at every pull request, and reports what its entry has to know."""
        entries = [
            one async for one in client.landing.all(FOLLOWED, repository_id=repository_id) if one.proposal.number
        ]
        failed: Exception | None = None
        for entry in entries:
            try:
                said = await self.news_of(entry) or _cleared(entry)
            except (ForgeAway, ForgeRefused, GitFailed, Blocked) as error:
                self._forget_token(entry, error)
                failed, said = failed or error, _words_about(entry, error)
            with contextlib.suppress(TerminalError):  # another look was first
                if said:
                    await client.landing.report(agent_id, entry, entry.epoch, **said)
            if isinstance(failed, ForgeAway):
                break
        if failed is not None:
            raise failed

    async def news_of(self, entry: pb.Entry) -> Mapping[str, pb.LandingFinding | pb.AtCommit]:
        """What the forge says that the entry does not know; nothing where it only has to wait."""
        forge = await self.forge(entry.terms.remote)
        request = await forge.request(entry.proposal.number)
        self.reach(Step.FORGE_READ)
        is_elsewhere = bool(request.merged_commit) and not _is_landed(entry, request)
        merged = "" if is_elsewhere else request.merged_commit
        merged = merged or await self._merged_by_hand(entry)
        if merged:
            return {"merged": pb.AtCommit(commit=merged)}
        if entry.state != pb.ENTRY_STATE_PROPOSED:
            return {}
        if is_elsewhere or not request.is_open:
            text_ = _merged_elsewhere(entry, request) if is_elsewhere else CLOSED_TEXT
            return {"found": pb.LandingFinding(kind=pb.FINDING_KIND_CLOSED, text=text_, url=request.url)}
        if request.conflicts and not entry.stack.on_branch:  # the layer below says itself where it has gone
            return {"base_moved": pb.AtCommit(commit=entry.candidate.base or entry.proposal.head)}
        found = await self._review(forge, entry) or await self._checks(forge, entry)
        return {"found": found} if found is not None else {}

    async def _merged_by_hand(self, entry: pb.Entry) -> str:
        try:
            return await self.merged_commit(entry) if self.merged_commit is not None else ""
        except Blocked:
            return ""

    async def _review(self, forge: Forge, entry: pb.Entry) -> pb.LandingFinding | None:
        """What reviewers ask of the commit that is proposed now; older words were answered by a newer commit."""
        asked = [
            review
            for review in await forge.reviews(entry.proposal.number)
            if review.asks_for_changes and review.commit == entry.proposal.head
        ]
        if not asked:
            return None
        said = "\n\n".join(f"{review.author}: {review.text}" for review in asked)
        return _untrusted(pb.FINDING_KIND_CHANGES_REQUESTED, said, asked[0].url, entry)

    async def _checks(self, forge: Forge, entry: pb.Entry) -> pb.LandingFinding | None:
        """Failed checks, once none is pending any more: one that is run again may still pass."""
        checks = await forge.checks(entry.proposal.head)
        failed = [check for check in checks if check.state is CheckState.FAILED]
        if not failed or any(check.state is CheckState.PENDING for check in checks):
            return None
        logs = [f"{check.name}:\n{await self._log(forge, check)}" for check in failed[:MAX_FAILED]]
        return _untrusted(pb.FINDING_KIND_CHECKS_FAILED, "\n\n".join(logs), failed[0].url, entry)

    async def _log(self, forge: Forge, check: Check) -> str:
        return excerpt(await forge.log_of(check), MAX_LOG // MAX_FAILED)


async def _listen(client: Client, agent_id: str, woken: asyncio.Event, gather_seconds: float) -> None:
    """Hears what webhooks ask for; without a control plane that knows them, or while it is away, polling is all."""
    while True:
        try:
            if await client.landing.forge_woken(agent_id, LISTEN_SECONDS):
                await asyncio.sleep(gather_seconds)
                woken.set()
        except CallFailed:
            await asyncio.sleep(LISTEN_SECONDS)


async def _rest(seconds: float, ends: Sequence[asyncio.Event]) -> None:
    """Until one of the events, or the time is over."""
    waits = [asyncio.create_task(event.wait()) for event in ends]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _held_up(error: Exception) -> pb.HeldUp:
    later = (
        f", in {error.retry_after_seconds:g} s" if isinstance(error, ForgeAway) and error.retry_after_seconds else ""
    )
    return pb.HeldUp(text=f"{' '.join(str(error).split())[:400]}; it is tried again{later}")


def _words_about(entry: pb.Entry, error: Exception) -> Mapping[str, pb.HeldUp]:
    """What an entry has to know of a look that failed."""
    return {"held_up": _held_up(error)} if entry.state == pb.ENTRY_STATE_PROPOSED else {}


def _cleared(entry: pb.Entry) -> Mapping[str, pb.HeldUp]:
    return {"held_up": pb.HeldUp()} if entry.held_up and entry.state == pb.ENTRY_STATE_PROPOSED else {}


def _is_landed(entry: pb.Entry, request: Request) -> bool:
    """Whether a pull request was merged into the target of its entry, and not into a layer below."""
    return bool(request.merged_commit) and request.target in ("", entry.terms.target)


def _merged_elsewhere(entry: pb.Entry, request: Request) -> str:
    return (
        f"the pull request was merged into {request.target[:200]}, which is not {entry.terms.target}: once that branch is "
        "merged this is seen by itself; `retry` proposes what is missing anew"
    )


def _untrusted(kind: pb.FindingKind.ValueType, said: str, url: str, entry: pb.Entry) -> pb.LandingFinding:
    """A finding in a forge's words, which start from the commit that they are about."""
    clean = said.replace("\0", "")
    return pb.LandingFinding(
        kind=kind,
        text=excerpt(clean, MAX_LOG),
        url=url[:2048],
        base=entry.proposal.head,
        untrusted=True,
        floor=entry.candidate.base,
    )


async def push_own_branch(target: Target, branch: str, head: str) -> None:
    """Pushes a branch of ours; force is for a branch that only Pointsman writes to, and only over what we saw there."""
    assert branch.startswith(OWN_BRANCHES), "never with force to a branch that is not ours"
    address = await target.address()
    there = await git(target.clone, "ls-remote", address, f"refs/heads/{branch}", extra=target.secrets)
    seen = there.decode().split("\t")[0].strip()
    if seen == head:
        return
    if seen and not await target.has(seen):  # whatever we pushed, here or as another integrator's layer, we have
        raise Blocked(
            f"somebody else has pushed {seen[:12]} to {branch}, which would be lost: merge it there, or take it away from "
            "the branch, then answer `retry`"
        )
    try:
        await git(
            target.clone, "push", "-q", "--no-verify", f"--force-with-lease=refs/heads/{branch}:{seen}", address,
            f"{head}:refs/heads/{branch}", extra=target.secrets,
        )  # fmt: skip
    except GitFailed as error:
        raise Blocked(f"the branch {branch} cannot be pushed: {error}") from None
