"""The context of a conflict: files, hunks, and the other side's tasks and claims."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.git import git
from pointsman.api.handoff.v1.delivery_pb2 import Delivery
from pointsman.landing.chain import Placed
from pointsman.worker.quoting import quote

MAX_RUNS, MAX_CLAIMS, MAX_DIFF_BYTES = 8, 10, 20_000
_RUN = re.compile(r"^Pointsman-Run: (\S+)$", re.MULTILINE)
Deliveries = Callable[[str], Awaitable[Delivery]]
"""What a run delivered; an empty delivery for one that is gone."""


@dataclass(frozen=True, slots=True)
class ConflictContext:
    """What somebody has to know who resolves it."""

    text: str
    files: tuple[str, ...]
    other_run_ids: tuple[str, ...]


async def conflict_context(
    clone: Path, placed: Placed, sides: tuple[str, str, str], deliveries: Deliveries
) -> ConflictContext:
    """The context of a conflict between work (base to commit) and a tip."""
    base, commit, tip = sides
    run_ids = await _other_runs(clone, base, tip, placed.conflicts)
    parts = ["Both sides changed these lines:", placed.hunks]
    for run_id in run_ids:
        parts += _other_side(await deliveries(run_id))
    diff = await git(clone, "diff", "--no-color", "--no-ext-diff", "--no-textconv", base, commit)
    shown = diff[:MAX_DIFF_BYTES].decode(errors="ignore")
    cut = "\n[the rest is on the branch of the run]" if len(diff) > MAX_DIFF_BYTES else ""
    parts += [f"The work to be brought over, {base[:12]} to {commit[:12]}:", f"{shown}{cut}"]
    return ConflictContext("\n\n".join(filter(None, parts)), placed.conflicts, run_ids)


async def _other_runs(clone: Path, base: str, tip: str, files: Sequence[str]) -> tuple[str, ...]:
    """The runs whose commits on the target touch the files since the work began, newest first."""
    paths = [f":(top,literal){name}" for name in files[:256]]
    said = await git(clone, "log", "--format=%B", f"{base}..{tip}", "--", *paths, ok=(0, 128))
    return tuple(dict.fromkeys(_RUN.findall(said.decode(errors="replace"))))[:MAX_RUNS]


def _other_side(delivery: Delivery) -> list[str]:
    said = []
    for item in delivery.deliverables:
        claims = [f"- {claim.statement}" for claim in item.claims[:MAX_CLAIMS]]
        said.append(quote("\n".join((item.statement, *claims)), f"the run {delivery.run_id}, which landed before"))
    return said
