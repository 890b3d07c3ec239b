"""What the command line says to somebody who has just begun."""

from pathlib import Path

import pytest

from pointsman.cli.commands.config import _file_settings
from pointsman.cli.session.delivery_branch import _git_in
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


def test_a_git_command_can_be_typed_where_the_reader_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = tmp_path / "my repo" / "src", tmp_path / "other"
    inside.mkdir(parents=True)
    outside.mkdir()
    monkeypatch.chdir(inside)
    assert _git_in(tmp_path / "my repo") == "git"
    monkeypatch.chdir(outside)
    assert _git_in(tmp_path / "my repo") == f"git -C '{tmp_path / 'my repo'}'"
