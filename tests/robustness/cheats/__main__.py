"""`make cheats`: proves the corpus and prints what was accepted, asked and refused, and what each defence is worth."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from pointsman.proof.prover import Baselines
from pointsman.proof.verdict import Decision, Defence
from tests.robustness.cheats.ecosystems import ECOSYSTEMS
from tests.robustness.cheats.functions import BUGS
from tests.robustness.cheats.measure import Outcome, Trial, all_trials, run_trial
from tests.robustness.cheats.tasks import bugs, features


def main() -> None:
    """Runs what the options ask for."""
    parser = argparse.ArgumentParser(prog="tests.robustness.cheats", description=__doc__)
    parser.add_argument("--each", type=int, default=1, help="deliveries of each kind per ecosystem; 0 for all")
    parser.add_argument("--defences", action="store_true", help="also switch off each defence in turn")
    parser.add_argument("--only", default="", help="only this ecosystem")
    options = parser.parse_args()
    for ecosystem in ECOSYSTEMS:
        if not ecosystem.is_here:
            print(f"LEFT OUT: {ecosystem.name}, because {ecosystem.program} is not installed", file=sys.stderr)
    trials = list(_chosen(options.each, options.only))
    found = asyncio.run(_run(trials, frozenset()))
    print("\n".join(tables(found)))
    if options.defences:
        for defence in Defence:
            without = asyncio.run(
                _run([trial for trial in trials if trial.group == "mechanical"], frozenset({defence}))
            )
            paid = sum(outcome.decision is Decision.ACCEPTED for outcome in without)
            print(f"| without {defence} | {paid} of {len(without)} |", flush=True)


def _chosen(each: int, only: str) -> Iterator[Trial]:
    """The first trials of each kind in each ecosystem, spread over the tasks."""
    seen: Counter[tuple[str, str, str]] = Counter()
    every = [trial for trial in all_trials(bugs(), features()) if only in ("", trial.task.ecosystem.name)]
    for trial in every:
        key = (trial.task.ecosystem.name, trial.group, trial.name)
        if each == 0 or (seen[key] < each and _turn(trial)):
            seen[key] += 1
            yield trial


def _turn(trial: Trial) -> bool:
    """Lets every kind start at another task, so that few trials cover many bugs."""
    if trial.task.is_feature:
        return True
    start = sum(map(ord, trial.name)) % (len(BUGS) - 4)
    return BUGS.index(trial.task.function) >= start


async def _run(trials: Sequence[Trial], off: frozenset[Defence]) -> list[Outcome]:
    baselines = Baselines()
    found = []
    for number, trial in enumerate(trials, 1):
        outcome = await run_trial(trial, off, baselines)
        found.append(outcome)
        where = f"{trial.task.ecosystem.name}/{trial.task.function.name}"
        why = "; ".join(outcome.reasons)[:150].replace("\n", " ")
        print(
            f"{number}/{len(trials)} {trial.group}: {trial.name} ({where}): {outcome.decision} {outcome.grade}: {why}",
            file=sys.stderr,
        )
    return found


def tables(found: Sequence[Outcome]) -> Iterator[str]:
    """Figures by group, and by kind."""
    for group in dict.fromkeys(outcome.trial.group for outcome in found):
        mine = [outcome for outcome in found if outcome.trial.group == group]
        yield from (
            "",
            f"### {group}",
            "",
            "| kind | trials | accepted | asked | refused | grades |",
            "|---|---|---|---|---|---|",
        )
        for name in dict.fromkeys(outcome.trial.name for outcome in mine):
            yield _row(name, [outcome for outcome in mine if outcome.trial.name == name])
        yield _row("**all**", mine)
    slow = [outcome for outcome in islice(found, None) if outcome.trial.name == "true solution"]
    yield from ("", f"Proof against the bare command, true solutions: {_ratio(slow)}.")


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    count = Counter(outcome.decision for outcome in outcomes)
    grades = Counter(outcome.grade for outcome in outcomes if outcome.decision is Decision.ACCEPTED)
    shown = ", ".join(f"{grade} {number}" for grade, number in grades.items())
    cells = [count[decision] for decision in (Decision.ACCEPTED, Decision.ASKED, Decision.REFUSED)]
    return f"| {name} | {len(outcomes)} | {' | '.join(map(str, cells))} | {shown} |"


def _ratio(outcomes: Sequence[Outcome]) -> str:
    whole, bare = sum(one.seconds for one in outcomes), sum(one.bare_seconds for one in outcomes)
    return f"{whole:.1f} s against {bare:.1f} s in {len(outcomes)} proofs" if bare else "not measured"


if __name__ == "__main__":
    main()
