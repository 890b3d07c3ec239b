"""What every command promises about --json, and how messages look in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pointsman.api.common.v1 import common_pb2
from pointsman.api.orchestrator.v1 import run_pb2
from pointsman.cli.commands import COMMANDS
from pointsman.cli.commands.route import app as route_app
from pointsman.cli.commands.workflow import app as workflow_app
from pointsman.cli.render.json_output import as_dict

runner = CliRunner()


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and every subcommand, by what a user types."""
    for name, listed in COMMANDS.items():
        command: Any = typer.main.get_command(listed.load())
        if not hasattr(command, "commands"):
            yield name, command
            continue
        for sub_name, subcommand in command.commands.items():
            yield f"{name} {sub_name}", subcommand


def test_every_command_takes_json() -> None:
    without = [name for name, command in commands() if not any("--json" in option.opts for option in command.params)]
    assert without == []


def test_numbers_are_numbers_however_deep_and_times_are_texts() -> None:
    run = run_pb2.Run(id="r", usage=run_pb2.Usage(tokens=1 << 40))
    run.created_at.FromSeconds(1)
    shown = as_dict(run)
    assert (shown["usage"]["tokens"], shown["created_at"]) == (1 << 40, "1970-01-01T00:00:01Z")
    assert as_dict(common_pb2.Transition(seq=7)) == {"seq": 7}
    assert as_dict(common_pb2.Transition(), whole=True)["seq"] == 0


def test_the_prompt_is_json_where_that_is_asked_for() -> None:
    assert json.loads(runner.invoke(route_app, ["prompt", "--json"]).stdout)["prompt"].startswith("#")


def test_classes_of_tasks_are_json_where_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "tasks.md"
    file.write_text("## T1: call the payment API\n", encoding="utf-8")
    result = runner.invoke(workflow_app, ["classify", str(file), "--json"])
    assert [task["task_id"] for task in json.loads(result.stdout)] == ["T1"], result.output


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00\x80", b"fix \xc3\x28 in src/"])
def test_a_message_from_standard_input_may_be_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    result = runner.invoke(route_app, ["-", "--json"], input=data)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["mode"] in ("ANSWER", "ACTION")
