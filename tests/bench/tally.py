"""Counts what a server process does. `python -m tests.bench.tally MODULE` runs a service and prints its tally for each line it reads."""

import json
import runpy
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from pointsman.services.chassis.rpc.server import Server
from pointsman.services.chassis.storage.writer import Writer
from tests.scenarios.processes import CONTEXTS, Processes


class Tally:
    """What a server process did: calls taken, transactions that wrote."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.commits = 0

    def install(self) -> None:
        """Count every call that is admitted and every commit of a writing connection."""
        admit, transact = Server._admit, Writer._commit_batch

        def counted_admit(server: Any, method: Any, *asked: Any) -> Any:
            self.calls[method.name] += 1
            return admit(server, method, *asked)

        def counted_transact(writer: Any, writes: Any) -> Any:
            result = transact(writer, writes)
            self.commits += 1
            return result

        Server._admit = counted_admit  # type: ignore[method-assign,assignment]
        Writer._commit_batch = counted_transact  # type: ignore[method-assign,assignment]

    def tell(self) -> None:
        """Print what was counted so far."""
        print(json.dumps({"calls": sum(self.calls.values()), "commits": self.commits}), flush=True)

    def tell_on_request(self) -> None:
        """Print it for each line that comes in, until nothing comes any more."""
        for _ in sys.stdin:
            self.tell()


class CountedProcesses(Processes):
    """Four services, each in a process that counts for itself."""

    def __init__(self, data: Path, environment: dict[str, str]) -> None:
        super().__init__(data, environment, "tests.bench.tally")

    def tally(self) -> dict[str, int]:
        """Calls and commits of all four together, so far."""
        total: Counter[str] = Counter()
        for context in CONTEXTS:
            total.update(json.loads(self.ask(context)))
        return dict(total)


def main(module: str) -> None:
    """The service as it would run by itself, counted."""
    tally = Tally()
    tally.install()
    threading.Thread(target=tally.tell_on_request, daemon=True).start()
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1])
