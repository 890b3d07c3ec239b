"""What the command line says to somebody who has just begun."""

from pathlib import Path

import pytest

from pointsman.api.handoff.v1.delivery_pb2 import Delivery
from pointsman.api.orchestrator.v1.run_pb2 import Question as RunQuestion
from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.cli.commands.config import _file_settings
from pointsman.cli.session.delivery_branch import _git_in
from pointsman.cli.session.follow import delivery_lines, question_lines
from pointsman.cli.session.repository import with_repository
from pointsman.client import Order
from pointsman.project import ProjectFile
from pointsman.project.keys import SECTIONS
from tests.unit.worker.repositories import repository


def test_every_key_of_the_project_file_is_a_setting() -> None:
    shown = [setting.name for setting in _file_settings(ProjectFile(), "pointsman.toml")]
    assert shown == [f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys]


async def test_a_project_file_that_is_not_committed_is_named_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "user"
    await repository(folder, {"a": "1\n"})
    (folder / "b").write_text("2\n")
    await with_repository(Order("work"), folder, print, include_changes=False)
    assert "git add" not in capsys.readouterr().err
    (folder / "pointsman.toml").write_text("")
    await with_repository(Order("work"), folder, print, include_changes=False)
    assert "git add pointsman.toml && git commit" in capsys.readouterr().err


def test_what_a_question_says_is_said_once_and_its_other_subjects_follow() -> None:
    asked = RunQuestion(text="It failed: disk full. What now?", subjects=["disk full", "T1"])
    lines = list(question_lines(Run(id="run_1", question=asked)))
    assert lines[:2] == ["run_1 waits for a person: It failed: disk full. What now?", "  T1"]
    assert lines[2].endswith("pointsman cancel run_1")


def test_a_delivery_elsewhere_is_put_on_a_branch_with_the_repository_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, delivery, folder = Run(id="run_1"), Delivery(), tmp_path / "my repo"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    assert list(delivery_lines(run, delivery, folder))[-1].endswith(f"deliver run_1 --repo '{folder}'")
    monkeypatch.chdir(folder)
    assert list(delivery_lines(run, delivery, folder))[-1].endswith("deliver run_1")


def test_a_git_command_can_be_typed_where_the_reader_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = tmp_path / "my repo" / "src", tmp_path / "other"
    inside.mkdir(parents=True)
    outside.mkdir()
    monkeypatch.chdir(inside)
    assert _git_in(tmp_path / "my repo") == "git"
    monkeypatch.chdir(outside)
    assert _git_in(tmp_path / "my repo") == f"git -C '{tmp_path / 'my repo'}'"
