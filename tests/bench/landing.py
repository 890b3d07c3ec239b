"""Entries landed per minute with a proof of a second: one by one and batched, beside a shell script that rebases."""

import asyncio
import json
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pointsman.landing.integrator import Integrator, Place
from pointsman.landing.proposals import Proposals
from pointsman.services.orchestrator.domain.landing.enums import EntryState
from tests.unit.landing.queues import Scene, git, scene

ENTRIES = 20
PROJECT = '[proof]\nverify = ["sleep 1"]\n'
SCRIPT = """
set -e
for number in $(seq 1 {entries}); do
  git worktree add -q --detach ../tree pointsman/run_$number
  cd ../tree && git -c user.name=s -c user.email=s@s rebase -q main && sleep 1
  git update-ref refs/heads/main HEAD && cd - > /dev/null && git worktree remove ../tree
done
"""


def main() -> None:
    """Measure each once, in turn, and print entries per minute."""
    script = by_script()
    for name, batch in (("alone", 1), ("batched", ENTRIES)):
        seconds = asyncio.run(by_integrator(batch))
        row = {
            "name": f"landing_{name}",
            "entries_per_minute": round(60 * ENTRIES / seconds, 1),
            "script_per_minute": round(60 * ENTRIES / script, 1),
            "ratio_to_script": round(script / seconds, 2),
        }
        print(json.dumps(row), flush=True)


def prepared(folder: Path) -> Scene:
    """A repository with as many independent branches."""
    there = scene(folder, {"pointsman.toml": PROJECT})
    for number in range(1, ENTRIES + 1):
        there.enqueue(number, {f"f{number}": "x\n"})
    return there


def by_script() -> float:
    """Seconds that rebasing and proving one after the other takes."""
    with tempfile.TemporaryDirectory() as folder:
        there = prepared(Path(folder))
        begun = time.perf_counter()
        subprocess.run(["sh", "-c", SCRIPT.format(entries=ENTRIES)], cwd=there.folder, check=True)
        seconds = time.perf_counter() - begun
        assert len(git(there.folder, "ls-tree", "--name-only", "main").splitlines()) == ENTRIES + 1
        return seconds


async def by_integrator(batch: int) -> float:
    """Seconds that the integrator takes, with its real proof in a sandbox; the queue is in memory."""
    with tempfile.TemporaryDirectory() as folder:
        there = prepared(Path(folder))
        place = replace(Place(there.root, there.folder), max_batch=batch)
        integrator = Integrator("bench", place, Proposals(there.folder, {}))
        begun = time.perf_counter()
        while await integrator.round(there.client):
            pass
        seconds = time.perf_counter() - begun
        assert {entry.status for entry in there.landing.entries.values()} == {EntryState.LANDED}
        return seconds


if __name__ == "__main__":
    main()
