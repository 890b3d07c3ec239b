"""Two real runs that change the same lines: both owners are told while both still work."""

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.hello_repository import example_repository
from tests.scenarios.commands import finished, open_gate, running

pytestmark = pytest.mark.timeout(240)
WRITER = Path(__file__).parent / "agents" / "early_writer.py"


async def test_both_runs_are_told_of_their_conflict_before_either_hands_in(tmp_path: Path) -> None:
    repository, gate = await example_repository(tmp_path), tmp_path / "gate"
    gate.mkdir()
    environment = {"POINTSMAN_DATA": str(tmp_path / "data")}
    with ExitStack() as stack:
        stack.enter_context(running("up", "--port", "0", "--no-crew", **environment)).line_with(" up at ")
        runs, ids = [], []
        for words in ("one says it", "the other says it"):
            command = shlex.join((sys.executable, "-I", str(WRITER), str(gate), words))
            wanted = ("run", f"write a greeting: {words}", "--action", "--solo", "--repo", str(repository))
            runs.append(stack.enter_context(running(*wanted, "--command", command, **environment)))
            ids.append(runs[-1].line_with("run run_").split()[1])
        for run, other in zip(runs, reversed(ids), strict=True):
            line = run.line_with("coming conflict")
            assert f" with {other} (" in line
            assert line.endswith("both change hello/__init__.py\n")
        for run_id, other in zip(ids, reversed(ids), strict=True):
            assert f" with {other} (" in finished("show", run_id, **environment)[1]
        open_gate(gate)
        assert [run.wait(120) for run in runs] == [0, 0], "it is a word in time, and stops nobody"
