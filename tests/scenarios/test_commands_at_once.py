"""Several commands on one data directory: whoever comes second uses the control plane of the first, or waits for it."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.eventually import eventually_now
from tests.scenarios.commands import running

NO_RUNS = ["no runs; `pointsman run` starts one\n"]
pytestmark = pytest.mark.timeout(150)


def test_commands_that_start_at_once_all_end_well(tmp_path: Path) -> None:
    with ExitStack() as stack:
        started = [stack.enter_context(running("runs", POINTSMAN_DATA=str(tmp_path))) for _ in range(5)]
        ended = [(one.wait(120), one.lines) for one in started]
    assert ended == [(0, NO_RUNS)] * 5


def test_a_command_waits_for_a_control_plane_that_is_starting(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path)}
    with running("up", "--port", "0", **data):
        eventually_now((tmp_path / "pointsman.lock").exists, 60)
        with running("runs", **data) as command:
            assert (command.wait(120), command.lines) == (0, NO_RUNS)
