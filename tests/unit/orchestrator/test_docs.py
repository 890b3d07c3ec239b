"""The page about the orchestrator shows the machine as it is, and so does the command."""

import itertools
import json
from pathlib import Path

import pytest

from pointsman.cli.commands.machine import machine
from pointsman.services.orchestrator.domain.enums import State
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockRole
from pointsman.services.orchestrator.domain.table import TABLE, mermaid
from tests.scenarios import behaviours

PAGE = Path(__file__).resolve().parents[3] / "docs" / "concepts" / "orchestrator.md"


def test_the_diagram_on_the_page_is_printed_from_the_table() -> None:
    drawn = PAGE.read_text().split("<!-- machine:begin -->\n")[1].split("<!-- machine:end -->")[0]
    assert drawn == f"```mermaid\n{mermaid()}```\n"


def test_the_page_prints_where_each_mock_behaviour_ends_and_leaves_none_out() -> None:
    printed = PAGE.read_text().split("<!-- behaviours:begin -->\n")[1].split("<!-- behaviours:end -->")[0]
    assert printed == behaviours.table()
    assert set(behaviours.ENDS) == set(itertools.product(MockRole, MockOutcome))


def test_the_command_prints_states_and_transitions_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    machine(as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["states"] == list(State)
    assert len(printed["transitions"]) == len(TABLE.rows)
    assert printed["transitions"][0] == {
        "source": "BOOT",
        "event": "auto",
        "guard": "",
        "target": "IDLE_PROBE_BD",
        "actions": ["probe_unfinished_work"],
    }


def test_the_command_prints_the_diagram_and_one_line_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    machine(as_mermaid=True)
    assert capsys.readouterr().out == mermaid()
    machine()
    assert len(capsys.readouterr().out.splitlines()) == len(TABLE.rows)
