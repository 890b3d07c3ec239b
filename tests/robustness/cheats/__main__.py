"""`make cheats`: proves the corpus and prints what was accepted, asked and refused, and what each defence is worth."""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from pointsman.proof.prover import Baselines
from pointsman.proof.verdict import Defence
from tests.robustness.cheats.ecosystems import ECOSYSTEMS
from tests.robustness.cheats.functions import BUGS
from tests.robustness.cheats.java import JAVA
from tests.robustness.cheats.measure import Outcome, Trial, all_trials, java_trials, run_trial
from tests.robustness.cheats.tables import Row, defences, tables
from tests.robustness.cheats.tasks import bugs, features


@dataclass(slots=True)
class Campaign:
    """Trials that were proven before, in a file that can be taken up again, and the environments that they share."""

    path: Path
    root: Path
    until: float
    baselines: Baselines
    workers: int = 1

    def done(self) -> dict[str, Row]:
        """What the file holds."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        rows = [Row(**json.loads(line)) for line in lines]
        return {row.key: row for row in rows}

    async def run(self, trials: Sequence[Trial], off: frozenset[Defence] = frozenset()) -> list[Row]:
        """Proves what was not proven yet, for as long as there is time."""
        done = self.done()
        without = "".join(f" without {defence}" for defence in off)
        waiting = iter([trial for trial in trials if trial.key + without not in done])

        async def work() -> None:
            for trial in waiting:
                if monotonic() > self.until:
                    return
                row = _row(trial, await run_trial(trial, off, self.baselines, self.root), without)
                done[row.key] = row
                self._keep(row, f"{len(done)}/{len(trials)}")

        await asyncio.gather(*(work() for _ in range(self.workers)))
        return [done[trial.key + without] for trial in trials if trial.key + without in done]

    def _keep(self, row: Row, number: str) -> None:
        """Writes a result down at once."""
        with self.path.open("a") as file:
            file.write(json.dumps(row.__dict__) + "\n")
        why = "; ".join(row.told)[:150].replace("\n", " ")
        print(f"{number} {row.key}: {row.decision} {row.grade}: {why}", file=sys.stderr, flush=True)


def _row(trial: Trial, outcome: Outcome, without: str) -> Row:
    return Row(
        trial.key + without,
        trial.task.ecosystem.name,
        f"{trial.group}{without}",
        trial.name,
        str(outcome.decision),
        outcome.grade,
        outcome.seconds,
        outcome.bare_seconds,
        [*outcome.reasons, *outcome.signals],
        dict(outcome.without),
    )


def main() -> None:
    """Runs what the options ask for."""
    parser = argparse.ArgumentParser(prog="tests.robustness.cheats", description=__doc__)
    parser.add_argument("--each", type=int, default=1, help="deliveries of each kind per ecosystem; 0 for all")
    parser.add_argument("--defences", action="store_true", help="also say what each defence is worth")
    parser.add_argument("--only", default="", help="only this ecosystem")
    parser.add_argument("--kind", default="", help="only kinds whose name holds this")
    parser.add_argument("--group", default="", help="only mechanical, behavioural or honest deliveries")
    parser.add_argument("--repeat", type=int, default=1, help="how often the base's tests run, as [proof] repeat")
    parser.add_argument("--results", type=Path, default=None, help="a file to keep results in and to take up again")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after that many minutes")
    parser.add_argument("--workers", type=int, default=1, help="how many deliveries are proven at the same time")
    options = parser.parse_args()
    for ecosystem in (*ECOSYSTEMS, JAVA):
        if not ecosystem.is_here:
            print(f"LEFT OUT: {ecosystem.name}, because {ecosystem.program} is not installed", file=sys.stderr)
    chosen = [
        trial
        for trial in _chosen(options.each, options.only)
        if options.kind in trial.name and trial.group.startswith(options.group)
    ]
    trials = [replace(trial, repeat=options.repeat) for trial in _in_turn(chosen)]
    with tempfile.TemporaryDirectory(prefix="cheats-") as place:
        path = options.results or Path(place) / "results.jsonl"
        root = path.with_suffix(".environments") if options.results else Path(place) / "root"
        campaign = Campaign(path, root, monotonic() + options.minutes * 60, Baselines(), options.workers)
        found = asyncio.run(campaign.run(trials))
        print("\n".join(tables(found)))
        if options.defences:
            print("\n".join(defences(found)))
            early = [trial for trial in trials if trial.key in _refused_early(found)]
            rows = asyncio.run(campaign.run(early, frozenset({Defence.TREE_CHECKS})))
            paid = Counter(row.decision for row in rows)
            print(
                f"| tree checks, of those refused before a run | {len(rows)} | {paid['accepted']} | {paid['asked']} | |"
            )


def _refused_early(found: Sequence[Row]) -> set[str]:
    """Mechanical cheats that were refused before anything ran."""
    return {
        row.key for row in found if row.group == "mechanical" and row.decision == "refused" and not row.bare_seconds
    }


def _chosen(each: int, only: str) -> Iterator[Trial]:
    """The first trials of each kind in each ecosystem, spread over the tasks."""
    seen: Counter[tuple[str, str, str]] = Counter()
    corpus = (*all_trials(bugs(), features()), *java_trials())
    every = [trial for trial in corpus if only in ("", trial.task.ecosystem.name)]
    for trial in every:
        key = (trial.task.ecosystem.name, trial.group, trial.name)
        if each == 0 or (seen[key] < each and _turn(trial)):
            seen[key] += 1
            yield trial


def _in_turn(trials: Sequence[Trial]) -> list[Trial]:
    """Every kind once, each in another ecosystem than the one before it, then every kind again: any part is a sample."""
    kinds: dict[tuple[str, str], list[Trial]] = {}
    for trial in _ecosystems_in_turn(trials):
        kinds.setdefault((trial.group, trial.name), []).append(trial)
    rounds: list[tuple[int, int, Trial]] = []
    for number, mine in enumerate(kinds.values()):
        rounds += [((place - number) % len(mine), number, trial) for place, trial in enumerate(mine)]
    return [trial for _, _, trial in sorted(rounds, key=lambda one: one[:2])]


def _ecosystems_in_turn(trials: Sequence[Trial]) -> list[Trial]:
    """The first trial of each kind in every ecosystem, then the second: the first rounds see all of them."""
    seen: Counter[tuple[str, str, str]] = Counter()
    placed = []
    for trial in trials:
        key = (trial.group, trial.name, trial.task.ecosystem.name)
        placed.append((seen[key], trial))
        seen[key] += 1
    return [trial for _, trial in sorted(placed, key=lambda one: one[0])]


def _turn(trial: Trial) -> bool:
    """Lets every kind start at another task, so that few trials cover many bugs."""
    if trial.task.is_feature:
        return True
    start = sum(map(ord, trial.name)) % (len(BUGS) - 4)
    return BUGS.index(trial.task.function) >= start


if __name__ == "__main__":
    main()
