"""The project file comes from a commit, never from a working tree."""

from pathlib import Path

import pytest

from pointsman.project import InvalidProjectFile, ProjectFile
from pointsman.worker.base_project import project_at, source_at
from pointsman.worker.git import git, text
from tests.unit.worker.repositories import commit, repository

FILE = '[workspace]\ninclude = [".env.test"]\n[proof]\nverify = ["make check"]\n'


async def test_what_stands_in_the_working_tree_counts_for_nothing(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", {"pointsman.toml": FILE})
    later = await commit(tmp_path / "user", {"pointsman.toml": '[proof]\nverify = ["true"]\n'})
    (tmp_path / "user" / "pointsman.toml").write_text("[broken")
    assert [one.text for one in (await project_at(tmp_path / "user", base)).proof.verify] == ["make check"]
    assert [one.text for one in (await project_at(tmp_path / "user", later)).proof.verify] == ["true"]


async def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", {"a": "", "sub/pointsman.toml": "[broken"})
    assert await project_at(tmp_path / "user", base) == ProjectFile()


async def test_a_worktreeinclude_file_adds_to_the_includes(tmp_path: Path) -> None:
    files = {"pointsman.toml": FILE, ".worktreeinclude": ".env.test\nsecrets/*.json\n"}
    base = await repository(tmp_path / "user", files)
    assert (await project_at(tmp_path / "user", base)).workspace.include == (".env.test", "secrets/*.json")


async def test_a_link_of_that_name_is_not_followed(tmp_path: Path) -> None:
    await repository(tmp_path / "user", {"a": FILE})
    (tmp_path / "user" / "pointsman.toml").symlink_to("a")
    await git(tmp_path / "user", "add", "-A")
    await git(tmp_path / "user", "commit", "-q", "-m", "a link")
    assert await project_at(tmp_path / "user", await text(tmp_path / "user", "rev-parse", "HEAD")) == ProjectFile()


async def test_an_invalid_file_of_the_commit_is_refused(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", {"pointsman.toml": "[proof]\nverfy = []\n"})
    with pytest.raises(InvalidProjectFile, match="did you mean 'verify'"):
        await project_at(tmp_path / "user", base)


async def test_the_files_of_a_commit_are_named_and_read_without_a_checkout(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", {"a/b.txt": "one", "ä": "two"})
    await commit(tmp_path / "user", {"a/b.txt": "changed"})
    found = await source_at(tmp_path / "user", base)
    assert found.names == {"a/b.txt", "ä"}
    assert (await found.read("a/b.txt"), await found.read("ä")) == (b"one", b"two")
    assert found.tree_id == await text(tmp_path / "user", "rev-parse", f"{base}^{{tree}}")
