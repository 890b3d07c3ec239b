"""Public RPCs of real contexts, as users run them, against the stack floor of the same round: JSON lines.

A row counts only if it goes through a public RPC in `pointsman up` or in `pointsman serve` processes. The stack floor is an
empty gRPC call whose handler does the raw transaction with joined commits. Each round measures the floor and every deployment,
beginning with another one, and a ratio is the median of the rounds' own ratios: a slow minute hits both sides.
AGAINST=/path/to/another/checkout measures that checkout's `pointsman up` in the same rounds.
"""

import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.deployments import Checkout, Deployment, deployed
from tests.bench.load import load as load_floor
from tests.bench.workflow import Server, server
from tests.bench.workloads import WORKLOADS, Workload
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer, postgres_server

ROUNDS = int(os.environ.get("POINTSMAN_BENCH_ROUNDS", "5"))
SECONDS = float(os.environ.get("POINTSMAN_BENCH_SECONDS", "3"))


@dataclass(frozen=True, slots=True)
class Result:
    """What one round saw of one side."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    """Processor time of the servers for each unit."""
    rpcs: float = 0.0
    commits: float = 0.0
    disk_kb: float = 0.0


@dataclass(frozen=True, slots=True)
class Side:
    """A deployment of one checkout."""

    name: str
    layout: str
    checkout: Checkout


def sides() -> list[Side]:
    """Both layouts of this checkout and, if wanted, `up` of another."""
    here = Checkout.here()
    found = [Side("up", "up", here), Side("processes", "processes", here)]
    against = os.environ.get("AGAINST", "")
    if against:
        found.append(Side("against", "up", Checkout.at(Path(against).resolve())))
    return found


def measure_floor(at: Server, callers: int) -> Result:
    """Calls of a floor, whose warm-up is a fifth of all it does."""
    cpu = at.cpu_seconds()
    seen = asyncio.run(load_floor(at.port, callers, SECONDS))
    calls = seen.rate * SECONDS * 1.25
    return Result(seen.rate, seen.p50_ms, seen.p99_ms, (at.cpu_seconds() - cpu) / calls * 1000)


def measure(workload: Workload, deployment: Deployment, callers: int) -> Result:
    """One round of a workload, and what its servers counted from when it was prepared."""
    before: list[Counted] = []
    seen = asyncio.run(workload.run(deployment, callers, SECONDS, lambda: before.append(Counted.of(deployment))))
    after = Counted.of(deployment)
    counts = after.counts - before[0].counts
    return Result(
        seen.rate,
        seen.percentile_ms(0.5),
        seen.percentile_ms(0.99),
        (after.cpu_seconds - before[0].cpu_seconds) / seen.units * 1000,
        counts["rpcs"] / seen.units,
        counts["commits"] / seen.units,
        (after.disk_bytes - before[0].disk_bytes) / seen.units / 1024,
    )


@dataclass(frozen=True, slots=True)
class Counted:
    """What a deployment has used so far."""

    cpu_seconds: float
    counts: Counter[str]
    disk_bytes: int

    @classmethod
    def of(cls, deployment: Deployment) -> "Counted":
        """Read it now."""
        return cls(deployment.cpu_seconds(), deployment.counts(), deployment.disk_bytes())


def compare(workload: Workload, database: str, urls: "Urls", folder: Path) -> None:
    """All rounds of one workload on one database; one row for each number of callers and each side."""
    with ExitStack() as stack:
        floors = {
            kind: stack.enter_context(server("tests.bench.server", kind, urls.new(folder / f"{kind}.db")))
            for kind in ("stack", "empty")
        }
        running = {}
        for side in sides():
            environment = {**workload.environment, **urls.environment()}
            place = deployed(side.layout, side.checkout, folder / side.name, environment)
            running[side.name] = stack.enter_context(place)
        for callers in workload.callers:
            rounds = []
            for number in range(ROUNDS):
                order = [*floors, *running]
                order = order[number % len(order) :] + order[: number % len(order)]
                rounds.append(
                    {
                        name: measure_floor(floors[name], callers)
                        if name in floors
                        else measure(workload, running[name], callers)
                        for name in order
                    }
                )
            for name in running:
                emit(workload, database, callers, name, rounds)


class Urls:
    """Databases for the sides of a comparison."""

    def __init__(self, postgres: PostgresServer | None) -> None:
        self._postgres = postgres

    def new(self, file: Path) -> str:
        """The URL of an empty database."""
        return f"sqlite:///{file}" if self._postgres is None else new_postgres_database(self._postgres)

    def environment(self) -> dict[str, str]:
        """What a deployment is started with."""
        if self._postgres is None:
            return {}
        return {"POINTSMAN_DATABASE_URL": new_postgres_database(self._postgres)}


def emit(workload: Workload, database: str, callers: int, name: str, rounds: list[dict[str, Result]]) -> None:
    """Print the medians over the rounds."""

    def middle(attribute: str, side: str = name) -> float:
        return float(median(getattr(found[side], attribute) for found in rounds))

    row: dict[str, object] = {
        "bench": workload.name,
        "side": name,
        "database": database,
        "callers": callers,
        "per_second": round(middle("rate"), 1),
        "stack_per_second": round(middle("rate", "stack"), 1),
        "ratio_to_stack": _ratio(rounds, lambda found: found[name].rate * workload.commands / found["stack"].rate),
        "p50_ms": round(middle("p50_ms"), 2),
        "p50_ratio_to_stack": _ratio(
            rounds, lambda found: found[name].p50_ms / (found["stack"].p50_ms * workload.commands)
        ),
        "p99_ms": round(middle("p99_ms"), 2),
        "cpu_ms": round(middle("cpu_ms"), 3),
        "cpu_ratio_to_empty_call": _ratio(rounds, lambda found: found[name].cpu_ms / found["empty"].cpu_ms),
        "rpcs": round(middle("rpcs"), 2),
        "commits": round(middle("commits"), 2),
    }
    if database == "sqlite":
        row["disk_kb"] = round(middle("disk_kb"), 2)
    if "against" in rounds[0] and name == "up":
        row["ratio_to_against"] = _ratio(rounds, lambda found: found["up"].rate / found["against"].rate)
        row["cpu_ratio_to_against"] = _ratio(rounds, lambda found: found["up"].cpu_ms / found["against"].cpu_ms)
    print(json.dumps(row), flush=True)


def _ratio(rounds: list[dict[str, Result]], ratio: Callable[[Mapping[str, Result]], float]) -> float:
    return round(median(ratio(found) for found in rounds), 3)


def main() -> None:
    """Every workload (or POINTSMAN_BENCH_WORKLOADS, separated by commas) on both databases."""
    wanted = os.environ.get("POINTSMAN_BENCH_WORKLOADS", "")
    chosen = [workload for workload in WORKLOADS if not wanted or workload.name in wanted.split(",")]
    with postgres_server(durable=True) as postgres:
        for database, server_used in (("sqlite", None), ("postgresql", postgres)):
            for workload in chosen:
                with tempfile.TemporaryDirectory() as folder:
                    compare(workload, database, Urls(server_used), Path(folder))


if __name__ == "__main__":
    main()
