"""A release is made only of what its version, its changelog and its contents promise."""

import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.scripts import ROOT, script

NOTES = "## [0.1.0] - 2026-11-17\n\n### Added\n- Points.\n\n## [0.0.9] - 2026-11-01\n\n### Fixed\n- A switch.\n"


@pytest.fixture
def release() -> Iterator[ModuleType]:
    with script("deploy/release.py") as module:
        yield module


def test_the_notes_of_a_release_are_its_section_of_the_changelog(release: ModuleType) -> None:
    assert release.section_of(NOTES, "0.1.0") == "### Added\n- Points."
    assert release.section_of(NOTES, "0.0.9") == "### Fixed\n- A switch."


@pytest.mark.parametrize(
    ("changelog", "version", "said"),
    [
        (NOTES, "0.2.0", "no section `## [0.2.0]`"),
        (NOTES, "0.2.0.dev0", "no section `## [Unreleased]`"),
        (NOTES.replace(" - 2026-11-17", ""), "0.1.0", "needs its date"),
        (NOTES.replace("Added", "Novelties"), "0.1.0", "not Novelties"),
        (NOTES.replace("- Points.", ""), "0.1.0", "not empty"),
    ],
)
def test_a_version_that_the_changelog_does_not_have_is_not_released(
    changelog: str, version: str, said: str, release: ModuleType
) -> None:
    with pytest.raises(release.NotReady, match=re.escape(said)):
        release.section_of(changelog, version)


def test_our_changelog_has_notes_for_our_version(release: ModuleType) -> None:
    version = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[0]
    assert "- " in release.section_of((ROOT / "CHANGELOG.md").read_text(), version)


def wheel(folder: Path, *names: str) -> Path:
    made = folder / "pointsman-1-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return made


def test_an_archive_that_lacks_something_or_has_too_much_is_refused(release: ModuleType, tmp_path: Path) -> None:
    assert release.check_contents(wheel(tmp_path, *release.NEEDED)).startswith("pointsman-1-py3-none-any.whl: 6 files")
    with pytest.raises(release.NotReady, match=r"lacks pointsman/py\.typed"):
        release.check_contents(wheel(tmp_path, *(name for name in release.NEEDED if "py.typed" not in name)))
    for stray in ("tests/conftest.py", "pointsman/__pycache__/x.pyc", "data/router.db"):
        with pytest.raises(release.NotReady, match="has what it should not"):
            release.check_contents(wheel(tmp_path, *release.NEEDED, stray))


def test_the_contents_of_an_sdist_are_read_below_its_folder(release: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    with tarfile.open(tmp_path / "pointsman-1.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "README.md", "pointsman-1/README.md")
    assert release.contents(tmp_path / "pointsman-1.tar.gz") == ["README.md"]
