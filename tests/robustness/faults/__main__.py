"""`make faults`: campaigns of faults against real processes, sized by FAULT_SECONDS, FAULT_RUNS, FAULT_DATABASES.

FAULT_SEED draws another schedule; FAULT_DIRECT sets how many call workflow, pipeline and router directly; FAULT_COLD=1
starts each process from nothing; FAULT_FOLDER keeps stores and logs. Exit 0: sound; 1: broken; 2: void.
"""

import json
import os
import sys
from dataclasses import asdict

from tests.helpers.loopback import trust_loopback
from tests.robustness.faults.campaign import Figures, Terms, run
from tests.robustness.faults.schedule import Plan

SHOWN = 20


def main() -> int:
    """A campaign for each database, its figures as a JSON line, and what is wrong."""
    trust_loopback()
    code = 0
    for database in os.environ.get("FAULT_DATABASES", "sqlite,postgresql").split(","):
        terms = Terms(
            database,
            seconds=float(os.environ.get("FAULT_SECONDS", "150")),
            runs=int(os.environ.get("FAULT_RUNS", "64")),
            direct=int(os.environ.get("FAULT_DIRECT", "4")),
            cold=os.environ.get("FAULT_COLD", "") == "1",
            plan=Plan(int(os.environ.get("FAULT_SEED", "1"))),
        )
        folder = os.environ.get("FAULT_FOLDER", "")
        code = max(code, report(run(terms, f"{folder}/{database}" if folder else "")))
    return code


def report(figures: Figures) -> int:
    """Print what was done and found; the exit code."""
    shown = asdict(figures)
    for name in ("lost", "duplicated", "violations", "unexpected"):
        shown[name] = len(shown[name])
    print(json.dumps(shown), flush=True)
    for problem in figures.broken[:SHOWN]:
        print(f"BROKEN  {problem}", flush=True)
    if figures.slow:
        print(f"SLOW    {figures.slow}", flush=True)
    if figures.broken:
        return 1
    if figures.void:
        print(f"VOID    {figures.void}", flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
