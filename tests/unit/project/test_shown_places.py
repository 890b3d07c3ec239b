"""A project file comes with a repository: it shows no secrets of the user's to agents and proofs."""

from pathlib import Path

import pytest

from pointsman.project import read_project_file
from pointsman.project.setup_run import SetupFailed
from pointsman.project.shown_places import require_harmless


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    return tmp_path / "home"


def asked(place: object, hidden: Path, key: str = "read") -> None:
    require_harmless(read_project_file(f'[workspace]\n{key} = ["{place}"]\n'.encode()).workspace, (hidden,))


@pytest.mark.parametrize("place", ["~/.ssh", "~/.ssh/id", "~/.config/gh", "~/.local/share", "~/.claude"])
@pytest.mark.parametrize("key", ["read", "cache"])
def test_known_places_of_secrets_are_refused_with_the_key(place: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(SetupFailed, match=rf"\[workspace\] {key} names {place}, which is a known place of secrets"):
        asked(place, tmp_path / "data", key)


def test_the_data_directory_the_home_folder_and_what_leads_to_them_are_refused(home: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "credentials").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home / ".ssh")
    (tmp_path / "other").symlink_to(data / "credentials")
    with pytest.raises(SetupFailed, match="in the data directory"):
        asked(data / "credentials", data)
    with pytest.raises(SetupFailed, match="in the data directory"):
        asked(tmp_path / "other", data)
    with pytest.raises(SetupFailed, match="your whole home folder"):
        asked(home, data)
    with pytest.raises(SetupFailed, match="your whole home folder"):
        asked(tmp_path, data)
    with pytest.raises(SetupFailed, match="known place of secrets"):
        asked(tmp_path / "link", data)


@pytest.mark.parametrize("place", ["/opt/data", "~/.cache/uv", "~/.local/share/pnpm/store", "~/.m2/repository"])
def test_caches_and_other_folders_are_shown(place: str, tmp_path: Path) -> None:
    asked(place, tmp_path / "data")
