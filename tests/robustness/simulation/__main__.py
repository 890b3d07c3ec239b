"""`python -m tests.robustness.simulation --seeds 100000`: many seeds; `--seed 17`: one again; `--bug NAME`: with a planted bug."""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import structlog

from tests.robustness.simulation.bugs import BUGS
from tests.robustness.simulation.scope import Scope
from tests.robustness.simulation.seeds import Outcome, Simulation

CHUNK = 20
EVERY = 1000
SHOWN = 5
FEW = (0, 32, 64, 1, 2, 10, 11, 12)
"""Seeds of every scope."""
QUICKLY_FOUND = {
    "fold_something_else": FEW[:2],
    "deliver_from_memory": FEW[:2],
    "acknowledge_nothing": FEW[:2],
    "let_nothing_go": FEW[:5],
    "forget_answers": FEW[5:],
}
"""Planted bugs, with seeds of which one finds them."""


def main() -> int:
    """Run the seeds; 1 when a promise was broken."""
    wanted = _arguments()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.robustness.simulation", *sys.argv[1:]])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    if wanted.seed is not None:
        return _one(wanted.seed, wanted.bug)
    if wanted.short:
        return _short()
    begun = time.monotonic()
    found, done, sums, ends, scopes = [], 0, Counter[str](), Counter[str](), Counter[str]()
    for outcome in _outcomes(wanted):
        done += 1
        sums.update(transitions=outcome.transitions, deaths=outcome.deaths)
        ends.update(outcome.ends)
        scopes[Scope.of(outcome.seed).name] += 1
        if outcome.violations:
            found.append(outcome)
            _show(outcome, wanted.bug)
        if done % EVERY == 0:
            print(f"{done} seeds, {time.monotonic() - begun:.0f} s, {dict(sums)}", file=sys.stderr, flush=True)
        if len(found) >= wanted.stop_after or (wanted.seconds and time.monotonic() - begun > wanted.seconds):
            break
    figures = {"seeds": done, "first": wanted.first, "scopes": scopes, **sums, "ends": ends, "violated": len(found)}
    print(json.dumps({**figures, "seconds": round(time.monotonic() - begun, 1)}), flush=True)
    return 1 if found else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.simulation")
    parser.add_argument("--seeds", type=int, default=100_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so long")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--stop-after", type=int, default=5, help="violated seeds after which to stop")
    parser.add_argument("--seed", type=int, help="this one alone, with all it finds")
    parser.add_argument("--short", action="store_true", help="a few seeds twice, and some planted bugs")
    parser.add_argument("--bug", choices=sorted(BUGS), default="", help="plant this bug first")
    return parser.parse_args()


def _one(seed: int, bug: str) -> int:
    _prepare(bug)
    outcome = _run(seed)
    print(
        json.dumps(
            {
                "seed": seed,
                "transitions": outcome.transitions,
                "deaths": outcome.deaths,
                "digest": outcome.digest,
                "ends": outcome.ends,
            }
        )
    )
    for violation in outcome.violations:
        print(violation)
    return 1 if outcome.violations else 0


def _short() -> int:
    """What every test run does: all in few processes, since starting one costs more than the seeds."""
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = {bug: pool.apply(_finds, (bug, seeds)) for bug, seeds in QUICKLY_FOUND.items()}
    _prepare("")
    first = [_run(seed) for seed in FEW]
    again = [_run(seed) for seed in FEW]
    figures = {
        "violations": [violation for outcome in first for violation in outcome.violations],
        "transitions": sum(outcome.transitions for outcome in first),
        "deaths": sum(outcome.deaths for outcome in first),
        "same_again": [outcome.digest for outcome in first] == [outcome.digest for outcome in again],
        "planted_bugs_found": found,
    }
    print(json.dumps(figures))
    return 0


def _finds(bug: str, seeds: Sequence[int]) -> bool:
    """Whether one of the seeds finds a planted bug; in a process of its own, where it does no more harm."""
    _prepare(bug)
    return any(_run(seed).violations for seed in seeds)


def _outcomes(wanted: argparse.Namespace) -> Iterator[Outcome]:
    seeds = range(wanted.first, wanted.first + wanted.seeds)
    if wanted.jobs == 1:
        _prepare(wanted.bug)
        yield from map(_run, seeds)
        return
    with multiprocessing.get_context("fork").Pool(wanted.jobs, _prepare, (wanted.bug,)) as pool:
        yield from pool.imap_unordered(_run, seeds, CHUNK)


_simulations: list[Simulation] = []


def _prepare(bug: str) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    if bug:
        BUGS[bug]()
    _simulations.append(Simulation())


def _run(seed: int) -> Outcome:
    return _simulations[0].run(seed)


def _show(outcome: Outcome, bug: str) -> None:
    planted = f" --bug {bug}" if bug else ""
    print(f"VIOLATED  python -m tests.robustness.simulation --seed {outcome.seed}{planted}")
    for violation in outcome.violations[:SHOWN]:
        print(f"  {violation}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
