"""Trivial commands through the whole system: the router decides, the client executes."""

import json
import os
from pathlib import Path

import pytest

from tests.scenarios.commands import finished_in
from tests.unit.worker.repositories import repository

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    """A data directory, and a ping in front of the machine's own that prints its arguments."""
    programs = tmp_path / "programs"
    programs.mkdir()
    ping = programs / "ping"
    ping.write_text('#!/bin/sh\necho "ping got: $*"\n', encoding="utf-8")
    ping.chmod(0o755)
    return {"POINTSMAN_DATA": str(tmp_path / "data"), "PATH": f"{programs}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        ("echo hi", "hi\n"),
        ("echo -n 'Two  Words' $HOME", "Two  Words $HOME"),
        ("ping", "ping got: -c 4 127.0.0.1\n"),
        ("ping -c 2 example.com", "ping got: -c 2 example.com\n"),
    ],
)
def test_echo_and_ping_are_executed_by_the_fast_path(
    tmp_path: Path, data: dict[str, str], message: str, printed: str
) -> None:
    assert finished_in(tmp_path, "run", message, **data) == (0, printed)


async def test_in_a_repository_a_trivial_command_prints_nothing_but_its_output(
    tmp_path: Path, data: dict[str, str]
) -> None:
    folder = tmp_path / "user"
    await repository(folder, {"pytest.ini": "[pytest]\n"})
    assert finished_in(folder, "run", "echo hi", **data) == (0, "hi\n")


def test_a_trivial_command_as_json_has_its_output_and_an_option_that_is_not_taken_is_not_executed(
    tmp_path: Path, data: dict[str, str]
) -> None:
    code, output = finished_in(tmp_path, "run", "--json", "echo hi", **data)
    shown = json.loads(output)
    assert (code, shown["run"], shown["command"], shown["output"]) == (0, None, ["echo", "hi"], "hi\n")
    code, output = finished_in(tmp_path, "run", "date --set=2020-01-01", **data)
    assert code == 0
    assert "Executed at once are only" in output
