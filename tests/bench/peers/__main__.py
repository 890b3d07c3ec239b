"""A chain of durable steps with DBOS, LangGraph, Restate and ours, in turn in one run: JSON lines, then a table.

Ours and Restate are servers that a client calls for each step; DBOS and LangGraph run the steps in the caller's process,
without a call. Everything is on one machine, ours, DBOS and LangGraph on SQLite, Restate on its own log.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

from tests.bench.deployments import Checkout, Deployment, deployed
from tests.bench.workloads import StageChain

ENVIRONMENTS = Path(sys.argv[1])
"""Where `make bench-peers` has installed the peers."""
HERE = Path(__file__).parent
RESTATE_SERVER = "node_modules/@restatedev/restate-server-*/bin/restate-server"
"""The program itself; npm's is a script that starts it."""
ROUNDS, SECONDS = 3, 5.0
CALLERS = (1, 16)


@dataclass(frozen=True, slots=True)
class Measured:
    """One side, once: steps per second, and the processor time of its own processes for a step."""

    version: str
    steps_per_second: float
    cpu_ms: float


def ours(callers: int, folder: Path) -> Measured:
    """CompleteStage along chains of 25 stages, against `pointsman up`."""
    with deployed("up", Checkout.here(), folder, {}) as deployment:
        before: list[float] = []
        begin = partial(_note, before, deployment)
        load = asyncio.run(StageChain().run(deployment, callers, SECONDS, begin))
        cpu = deployment.cpu_seconds() - before[0]
    return Measured(version("pointsman"), load.rate, cpu / load.units * 1000)


def _note(before: list[float], deployment: Deployment) -> None:
    before.append(deployment.cpu_seconds())


def peer(name: str, callers: int, folder: Path) -> Measured:
    """The program of a peer, in its environment."""
    program: list[str | Path] = [ENVIRONMENTS / name / "bin/python", HERE / f"{name}_chain.py"]
    given: list[str | Path] = [str(callers), str(SECONDS), folder]
    server = [*ENVIRONMENTS.glob(RESTATE_SERVER)] if name == "restate" else []
    done = subprocess.run([*program, *given, *server], stdout=subprocess.PIPE, text=True, check=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


SIDES: dict[str, Callable[[int, Path], Measured]] = {
    "pointsman": ours,
    "restate": partial(peer, "restate"),
    "langgraph": partial(peer, "langgraph"),
    "dbos": partial(peer, "dbos"),
}


def main() -> None:
    """Measure every side several times, beginning with another one each time."""
    found: dict[tuple[str, int], list[Measured]] = {}
    for number in range(ROUNDS):
        names = list(SIDES)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            for callers in CALLERS:
                with tempfile.TemporaryDirectory() as folder:
                    one = SIDES[name](callers, Path(folder))
                found.setdefault((name, callers), []).append(one)
                row = {"bench": "chain", "side": name, "round": number, "callers": callers}
                print(json.dumps({**row, **asdict(one)}), flush=True)
    print_table(found)


def print_table(found: dict[tuple[str, int], list[Measured]]) -> None:
    """Medians over the rounds."""
    print("\n| | version | callers | steps/s | processor ms for a step |\n|---|---|---|---|---|")
    for (name, callers), rounds in sorted(found.items(), key=lambda item: item[0][1]):
        rate, cpu = median(one.steps_per_second for one in rounds), median(one.cpu_ms for one in rounds)
        print(f"| {name} | {rounds[0].version} | {callers} | {rate:.0f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
