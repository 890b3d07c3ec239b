"""One round over a queue: recover, place, prove together, land; bisect what fails."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.landing.chain import Piece, Placed, changed_files, place
from pointsman.landing.conflict import Deliveries, conflict_context
from pointsman.landing.layers import base_of
from pointsman.landing.proving import Outcome
from pointsman.landing.steps import Reach, Step
from pointsman.landing.target import Blocked, Target

MAX_FILES = 256
Prove = Callable[[str, str], Awaitable[Outcome]]
Report = Callable[..., Awaitable[Any]]
"""Reports about an entry: one of the fields of ReportEntryRequest."""


@dataclass(frozen=True, slots=True)
class Item:
    """An entry with its work in the clone."""

    entry: pb.Entry
    piece: Piece
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry's work on a tip, or behind others of a batch."""

    item: Item
    commit: str


class Round:
    """Lands what it can of one queue."""

    def __init__(
        self, target: Target, prove: Prove, report: Report, deliveries: Deliveries, reach: Reach = lambda _step: None
    ) -> None:
        self.target, self._prove, self.report = target, prove, report
        self._deliveries, self._reach = deliveries, reach
        self.landed = 0

    async def recover(self, entries: Sequence[pb.Entry]) -> None:
        """Goes on with candidates that somebody recorded before: they are in the target, or go there, or start again."""
        for entry in entries:
            tip, candidate = await self.target.tip(), entry.candidate
            if not await self.target.contains(candidate.tip, tip):
                if tip != candidate.base or not await self.target.has(candidate.tip):
                    await self._moved([entry], tip)
                    continue
                if not await self._try_advance([entry], tip, candidate.tip):
                    continue
            await self.report(entry, landed=pb.AtCommit(commit=candidate.tip))
            self.landed += 1

    async def land(self, items: Sequence[Item], tip: str = "") -> None:
        """Lands independent entries together, first on a tip that was just fetched; those that meet come in a later batch."""
        left = list(items)
        while left:
            tip = tip or await self.target.tip()
            self._reach(Step.FETCHED)
            left = [item for item in left if not await self._is_there(item, tip)]
            left = [item for item in left if not await self._brings_others(item, tip)]
            batch, left = independent(left)
            await self._land_batch(batch, tip)
            tip = ""

    async def _is_there(self, item: Item, tip: str) -> bool:
        """Whether somebody else has brought the work into the target; it is reported then."""
        if not await self.target.contains(item.entry.commit, tip):
            return False
        await self.report(item.entry, merged=pb.AtCommit(commit=tip))
        return True

    async def _brings_others(self, item: Item, tip: str) -> bool:
        """Whether commits that are not the run's would come along; a person is asked about them, unless one said yes."""
        entry = item.entry
        if item.piece.floor or entry.approved or await self.target.contains(entry.floor, tip):
            return False
        subjects = await self.target.subjects(entry.floor, tip)
        text = (
            f"the work stands on {entry.floor[:12]}, which {entry.terms.target} does not hold: the branch was rewritten, or "
            "the run started on another one. `approve` brings these commits along, `reject` leaves the work on its branch:"
        )
        found = pb.LandingFinding(kind=pb.FINDING_KIND_PROOF_ASKS, text=_bounded("\n".join((text, *subjects))))
        await self.report(entry, found=found)
        return True

    async def _land_batch(self, batch: Sequence[Item], base: str) -> None:
        """Proves a batch as one tree over a tip; one that fails is halved until the entry that fails is alone."""
        if not batch:
            return
        chain = await self._chain(batch, base)
        if not chain:
            return
        tip = chain[-1].commit
        try:
            outcome = await self._prove(base, tip)
        except Blocked as blocked:
            await self._found([one.item.entry for one in chain], blocked=str(blocked))
            return
        self._reach(Step.PROVED)
        if outcome.ok or (outcome.asks and len(chain) == 1 and chain[0].item.entry.approved):
            await self._land_chain(chain, base, outcome)
        elif len(chain) == 1:
            await self.refuse(chain[0], outcome, base)
        else:
            half = len(chain) // 2
            await self._land_batch([one.item for one in chain[:half]], base)
            await self._land_batch([one.item for one in chain[half:]], await self.target.tip())

    async def candidate(self, item: Item) -> pb.Entry | None:
        """An entry alone on the tip, proven and recorded; nothing where that failed, which is reported."""
        tip = await self.target.tip()
        if await self._is_there(item, tip) or await self._brings_others(item, tip):
            return None
        try:
            base = await base_of(self.target, item.entry)
            chain = await self._chain([item], base)
            if not chain or await self._is_empty(chain[0], base):
                return None
            outcome = await self._prove(base, chain[0].commit)
        except Blocked as blocked:
            await self._found([item.entry], blocked=str(blocked))
            return None
        self._reach(Step.PROVED)
        if not outcome.ok and not (outcome.asks and item.entry.approved):
            await self.refuse(chain[0], outcome, base)
            return None
        entry: pb.Entry = await self._record(chain[0], (base, chain[0].commit), outcome)
        self._reach(Step.CANDIDATE_REPORTED)
        return entry

    async def _is_empty(self, one: Candidate, base: str) -> bool:
        """Whether the target has the changes of a layer already, by a squash or a rebase; it is reported then."""
        entry = one.item.entry
        if not one.item.piece.floor or entry.stack.on_commit:
            return False
        if await self.target.tree_of(one.commit) != await self.target.tree_of(base):
            return False
        await self.report(entry, merged=pb.AtCommit(commit=base))
        return True

    async def _chain(self, batch: Sequence[Item], base: str) -> list[Candidate]:
        """The entries one after the other on the base; conflicts with the base itself are reported."""
        chain: list[Candidate] = []
        onto = base
        for item in batch:
            placed = await place(self.target.clone, item.piece, onto)
            if placed.conflicts and onto != base:
                placed_alone = await place(self.target.clone, item.piece, base)
                if not placed_alone.conflicts:
                    await self._moved([item.entry], onto)
                    continue
                placed = placed_alone
            if placed.conflicts:
                await self._conflicted(item, placed, base)
                continue
            onto = placed.commit
            chain.append(Candidate(item, onto))
        self._reach(Step.PLACED)
        return chain

    async def _land_chain(self, chain: Sequence[Candidate], base: str, outcome: Outcome) -> None:
        """Records each candidate, moves the target once, and reports."""
        tip = chain[-1].commit
        for one in chain:
            await self._record(one, (base, tip), outcome)
        self._reach(Step.CANDIDATE_REPORTED)
        entries = [one.item.entry for one in chain]
        if not await self._try_advance(entries, base, tip):
            return
        self._reach(Step.PUSHED)
        for entry in entries:
            await self.report(entry, landed=pb.AtCommit(commit=tip))
            self._reach(Step.LANDED_REPORTED)
        self.landed += len(entries)

    async def _record(self, one: Candidate, span: tuple[str, str], outcome: Outcome) -> Any:
        """Records a candidate before anything leaves this machine."""
        base, tip = span
        proven = pb.LandingCandidate(
            commit=one.commit,
            tip=tip,
            tree=await self.target.tree_of(tip),
            base=base,
            grade=outcome.grade,
            summary=outcome.summary[:4096],
        )
        return await self.report(one.item.entry, proven=proven)

    async def _try_advance(self, entries: Sequence[pb.Entry], base: str, tip: str) -> bool:
        """Moves the target; where it cannot be, the entries learn why."""
        try:
            if await self.target.advance(base, tip):
                return True
        except Blocked as blocked:
            await self._found(entries, blocked=str(blocked))
            return False
        await self._moved(entries, await self.target.tip())
        return False

    async def _moved(self, entries: Sequence[pb.Entry], tip: str) -> None:
        for entry in entries:
            await self.report(entry, base_moved=pb.AtCommit(commit=tip))

    async def _found(self, entries: Sequence[pb.Entry], *, blocked: str) -> None:
        for entry in entries:
            await self.report(entry, found=pb.LandingFinding(kind=pb.FINDING_KIND_BLOCKED, text=blocked))

    async def refuse(self, one: Candidate, outcome: Outcome, onto: str) -> None:
        """What a proof found is the entry's; a linked run starts from the tree that failed."""
        kind = pb.FINDING_KIND_PROOF_ASKS if outcome.asks else pb.FINDING_KIND_PROOF_FAILED
        text = "\n".join(outcome.asks) if outcome.asks else outcome.text
        files = sorted(one.item.files)[:MAX_FILES]
        base = "" if outcome.asks else await self.target.keep(one.item.entry.id, one.commit)
        found = pb.LandingFinding(kind=kind, text=_bounded(text), files=files, base=base, floor=onto)
        await self.report(one.item.entry, found=found)

    async def _conflicted(self, item: Item, placed: Placed, tip: str) -> None:
        entry = item.entry
        sides = (entry.floor, entry.commit, tip)
        context = await conflict_context(self.target.clone, placed, sides, self._deliveries)
        found = pb.LandingFinding(
            kind=pb.FINDING_KIND_CONFLICTED,
            text=_bounded(context.text),
            files=context.files[:MAX_FILES],
            other_run_ids=context.other_run_ids,
            base=await self.target.keep(entry.id, tip),
            floor=tip,
        )
        await self.report(entry, found=found)


def independent(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """The entries that share no file with one before them, in order, and the others."""
    taken: set[str] = set()
    batch: list[Item] = []
    rest: list[Item] = []
    for item in items:
        (rest if taken & item.files else batch).append(item)
        taken |= item.files
    return batch, rest


async def read_item(target: Target, entry: pb.Entry, message: str, tip: str) -> Item:
    """An entry whose work is in the clone."""
    files = await changed_files(target.clone, tip, entry.commit)
    floor = entry.floor if entry.HasField("stack") else ""
    return Item(entry, Piece(entry.commit, message, entry.terms.squash, floor), files)


def _bounded(text: str) -> str:
    return text.encode()[:48_000].decode(errors="ignore")
