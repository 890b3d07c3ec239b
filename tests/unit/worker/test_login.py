"""An agent's login is the user's own, however often either is refreshed; the rest of its home is private."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.profiles import Profile
from pointsman.worker.login import SharedLogin, private_home, source_of
from tests.helpers.eventually import eventually

OLD, NEW = json.dumps({"token": "old"}), json.dumps({"token": "new", "expires": 1})
PROFILE = Profile("box", ("box",), login=(".box/auth.json",), moved_by=("BOX_HOME=.box",))


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own credential file."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("BOX_HOME", raising=False)
    file = tmp_path / "user" / ".box" / "auth.json"
    file.parent.mkdir(parents=True)
    file.write_text(OLD)
    return file


def text_of(file: Path) -> str:
    return file.read_text()


def mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


def shared(user: Path, tmp_path: Path, name: str) -> tuple[SharedLogin, Path]:
    home = tmp_path / name
    (home / ".box").mkdir(parents=True)
    return SharedLogin(user, home, ".box/auth.json", tmp_path / "lock"), home / ".box" / "auth.json"


async def test_a_token_that_a_command_refreshes_reaches_the_user_while_it_runs(user: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with private_home(PROFILE, home, tmp_path / "locks"):
        assert (home / ".box/auth.json").read_text() == OLD
        (home / ".box/auth.json").write_text(NEW)

        async def written_back() -> bool:
            return text_of(user) == NEW

        await eventually(written_back)
    assert mode_of(user) == 0o600


async def test_a_token_that_is_refreshed_at_the_very_end_is_written_back_too(user: Path, tmp_path: Path) -> None:
    async with private_home(PROFILE, tmp_path / "home", tmp_path / "locks"):
        (tmp_path / "home/.box/auth.json").write_text(NEW)
    assert text_of(user) == NEW


def test_a_token_that_one_command_refreshes_reaches_the_other(user: Path, tmp_path: Path) -> None:
    one, copy = shared(user, tmp_path, "one")
    other, other_copy = shared(user, tmp_path, "other")
    copy.write_text(NEW)
    one.sync()
    other.sync()
    assert other_copy.read_text() == NEW
    other.sync()
    one.sync()
    assert user.read_text() == NEW


@pytest.mark.parametrize("written", ["", "no json", "[]", "{}", json.dumps({"other": 1}), "x" * 2_000_000])
def test_what_does_not_look_like_the_login_is_not_written_back(written: str, user: Path, tmp_path: Path) -> None:
    login, copy = shared(user, tmp_path, "home")
    copy.write_text(written)
    login.sync()
    assert user.read_text() == OLD


def test_a_link_that_a_command_puts_into_its_home_is_not_followed(user: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "auth.json").write_text(NEW)
    login, copy = shared(user, tmp_path, "home")
    copy.unlink()
    copy.symlink_to(secret / "auth.json")
    login.sync()
    assert user.read_text() == OLD
    copy.unlink()
    copy.parent.rmdir()
    copy.parent.symlink_to(secret)
    login.sync()
    assert user.read_text() == OLD
    user.write_text(json.dumps({"token": "newer"}))
    login.sync()
    assert (secret / "auth.json").read_text() == NEW
    assert [path.name for path in secret.iterdir()] == ["auth.json"]


def test_a_variable_of_the_agent_says_where_the_user_has_its_folder(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source_of(PROFILE, ".box/auth.json") == user
    monkeypatch.setenv("BOX_HOME", str(tmp_path / "moved"))
    assert source_of(PROFILE, ".box/auth.json") == tmp_path / "moved" / "auth.json"
    assert source_of(PROFILE, ".other/auth.json") == tmp_path / "user" / ".other/auth.json"


async def test_an_agent_without_a_login_file_has_an_empty_folder_for_it(user: Path, tmp_path: Path) -> None:
    without = replace(PROFILE, login=(".other/auth.json",))
    async with private_home(without, tmp_path / "home", tmp_path / "locks"):
        assert list((tmp_path / "home/.other").iterdir()) == []
    assert text_of(user) == OLD
