"""What a proof costs against its bare command, for a suite that takes seconds: `python -m tests.robustness.cheats.slow_suite`."""

import asyncio
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from time import monotonic

from pointsman.proof.prover import Baselines
from tests.robustness.cheats.ecosystems import PYTHON
from tests.robustness.cheats.functions import BUGS
from tests.robustness.cheats.honest import SHAPES
from tests.robustness.cheats.measure import honest_trial, run_trial
from tests.robustness.cheats.tasks import Task

SLOW_TESTS, ROUNDS = 16, 4_000_000
SUITES = {
    "that waits": "time.sleep(0.5)",
    "that computes": f"sum(number * number for number in range({ROUNDS}))",
}
"""One that leaves the processor to others, and one that keeps one of them busy."""
FACTOR, OVERHEAD_SECONDS = 2.2, 2.0


def main() -> None:
    """Times each suite."""
    for name, line in SUITES.items():
        tests = [f"\n\ndef test_slow_{number}():\n    {line}\n" for number in range(SLOW_TESTS)]
        _time(name, {"test_slow.py": "import time\n" + "".join(tests)})


def _time(suite: str, files: dict[str, str]) -> None:
    """Times the bare command, then proofs with and without the base's results at hand."""
    task = Task(PYTHON, BUGS[0])
    bare = _bare({**task.base, **files})
    allowed = FACTOR * bare + OVERHEAD_SECONDS
    print(f"suite {suite}, bare command: {bare:.1f} s; allowed {FACTOR} x + {OVERHEAD_SECONDS:g} s = {allowed:.1f} s")
    for shape in SHAPES[:2]:
        trial = replace(honest_trial(task, shape), base=files)
        baselines = Baselines()
        for known in ("the base is run too", "the base is known"):
            outcome = asyncio.run(run_trial(trial, baselines=baselines))
            print(f"{shape.name}, {known}: {outcome.seconds:.1f} s, {outcome.decision} {outcome.grade}")


def _bare(files: dict[str, str]) -> float:
    with tempfile.TemporaryDirectory() as place:
        for name, content in files.items():
            (Path(place) / name).write_text(content)
        begun = monotonic()
        subprocess.run(PYTHON.command, cwd=place, check=False, capture_output=True)
        return monotonic() - begun


if __name__ == "__main__":
    main()
