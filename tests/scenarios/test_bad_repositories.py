"""Repositories that cannot be worked on: the problem and the way out are said, and nothing is submitted or left."""

import os
import shutil
import sys
import zlib
from pathlib import Path

import pytest

from pointsman.worker.git import git, text
from tests.scenarios.commands import finished_in
from tests.unit.worker.repositories import commit, repository

pytestmark = pytest.mark.timeout(60)
WORKING = {"test_a.py": "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n"}
HUGE_FILE = "ab" * 20
OTHER_USER = 54_321
AGENT = ("--command", sys.executable)
COMMANDS = {
    "run here": ("run", "fix the add function in calc.py", *AGENT),
    "run": ("run", "fix the add function in calc.py", "--repo", ".", *AGENT),
    "init": ("init", "--yes"),
    "proof": ("proof", "run", "--base", "HEAD"),
    "agent": ("agent", "--repo", ".", *AGENT),
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def refused(folder: Path, command: tuple[str, ...], **environment: str) -> str:
    """The one line with which a command refuses a folder, before it wrote anything to the folder or the data directory."""
    before, data = sorted(folder.rglob("*")), folder.parent / "data"
    code, output = finished_in(folder, *command, POINTSMAN_DATA=str(data), **environment)
    assert (code, len(output.splitlines())) == (2, 1), output
    assert output.startswith("pointsman: "), output
    assert sorted(folder.rglob("*")) == before
    assert not list(data.rglob("*.db"))
    assert not (data / "worker").exists()
    return output


@every_command
async def test_without_git_its_absence_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    await repository(tmp_path / "user", WORKING)
    assert "git is not installed" in refused(tmp_path / "user", command, PATH="/nonexistent")


@every_command
def test_outside_of_a_repository_the_way_into_one_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    output = refused(tmp_path / "plain", command)
    assert "git repository" in output
    assert "go into one" in output or "`git init` makes one" in output


@every_command
async def test_a_bare_repository_is_to_be_cloned(command: tuple[str, ...], tmp_path: Path) -> None:
    await git(tmp_path, "init", "-q", "--bare", "user.git")
    output = refused(tmp_path / "user.git", command)
    assert f"{tmp_path}/user.git is bare" in output
    assert f"git clone {tmp_path}/user.git" in output


@every_command
async def test_a_repository_without_a_commit_needs_one(command: tuple[str, ...], tmp_path: Path) -> None:
    await git(tmp_path, "init", "-q", "user")
    assert "has no commit yet; the work starts from one: git add -A && git commit" in refused(
        tmp_path / "user", command
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@every_command
async def test_a_repository_of_another_user_is_to_be_copied(command: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "user"
    await repository(folder, WORKING)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, OTHER_USER, OTHER_USER)
    output = refused(folder, command)
    assert f"belongs to another user (number {OTHER_USER})" in output
    assert f"cp -r {folder} COPY" in output


async def test_a_copy_of_another_users_repository_is_worked_on(tmp_path: Path) -> None:
    await repository(tmp_path / "user", WORKING)
    shutil.copytree(tmp_path / "user", tmp_path / "copy")
    code, output = finished_in(tmp_path / "copy", "init", "--no-try", POINTSMAN_DATA=str(tmp_path / "data"))
    assert code == 0, output


async def test_inside_of_a_git_folder_the_working_tree_is_named(tmp_path: Path) -> None:
    await repository(tmp_path / "user", WORKING)
    output = refused(tmp_path / "user" / ".git", COMMANDS["init"])
    assert "is inside a .git folder; go to the working tree beside it" in output


async def more_than_the_disk(folder: Path) -> None:
    """A commit with a file that has a petabyte by its header, and no content: a checkout fails, and fills no disk."""
    await repository(folder, WORKING)
    place = folder / ".git" / "objects" / HUGE_FILE[:2]
    place.mkdir(exist_ok=True)
    (place / HUGE_FILE[2:]).write_bytes(zlib.compress(f"blob {10**15}\0".encode()))
    tree = (await git(folder, "mktree", stdin=f"100644 blob {HUGE_FILE}\thuge\n".encode())).decode().strip()
    made = await text(folder, "commit-tree", tree, "-p", "HEAD", "-m", "huge")
    await git(folder, "update-ref", "HEAD", made)


@pytest.mark.parametrize(("name", "expected"), [("run", 2), ("init", 1), ("proof", 2), ("agent", 2)])
async def test_a_tree_that_does_not_fit_on_the_disk_is_not_checked_out(
    name: str, expected: int, tmp_path: Path
) -> None:
    await more_than_the_disk(tmp_path / "user")
    (tmp_path / "user" / "pointsman.toml").write_text('[proof]\nverify = ["true"]\n')
    verify = ("--verify", "true") if name in {"run", "proof"} else ()
    tree = ("--tree", "HEAD") if name == "proof" else ()
    data = str(tmp_path / "data")
    code, output = finished_in(tmp_path / "user", *COMMANDS[name], *verify, *tree, POINTSMAN_DATA=data)
    assert code == expected, output
    assert "is too large for the disk of" in output
    assert "free some space, or name a folder on another disk with POINTSMAN_DATA" in output
    assert not (tmp_path / "data" / "worker" / "repositories").exists()


async def test_a_submodule_is_named_and_can_be_cloned_by_set_up(tmp_path: Path) -> None:
    module, folder, data = tmp_path / "module", tmp_path / "user", str(tmp_path / "data")
    head = await repository(module, {"inner.py": "x = 1\n"})
    await repository(folder, WORKING)
    await git(folder, "update-index", "--add", "--cacheinfo", f"160000,{head},vendor/dep")
    (folder / ".gitmodules").write_text(f'[submodule "dep"]\n\tpath = vendor/dep\n\turl = {module}\n')
    (folder / "pointsman.toml").write_text(
        f'[workspace]\nread = ["{module}"]\nsetup = ["git clone -q {module} vendor/dep"]\n'
        "[proof]\nverify = [\"sh -c 'cat vendor/dep/inner.py && python3 -m unittest -q'\"]\n"
    )
    await git(folder, "add", ".gitmodules", "pointsman.toml")
    await git(folder, "commit", "-q", "-m", "submodule")
    code, output = finished_in(folder, "init", POINTSMAN_DATA=data)
    assert (code, "GREEN by its exit code alone" in output) == (0, True), output
    assert "submodules are not checked out: clone those that the work needs in [workspace] setup" in output


@pytest.mark.parametrize("place", ["", "assets/"], ids=["top", "folder"])
async def test_files_of_git_lfs_are_said_to_be_pointers(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "user"
    await repository(folder, WORKING)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n"
    await commit(folder, {f"{place}.gitattributes": "*.bin filter=lfs -text\n", f"{place}a.bin": pointer})
    verify = ("--verify", "python3 -m unittest -q")
    data = str(tmp_path / "data")
    code, output = finished_in(folder, "proof", "run", "--base", "HEAD", *verify, POINTSMAN_DATA=data)
    assert "files of Git LFS are checked out as pointers, which set-up cannot replace" in output, (code, output)


async def test_a_detached_head_and_a_folder_with_spaces_and_other_letters_are_worked_on(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces ü 漢"
    await repository(folder, WORKING)
    await git(folder, "checkout", "-q", "--detach")
    code, output = finished_in(folder, "init", "--yes", POINTSMAN_DATA=str(tmp_path / "data"))
    assert code == 0, output
    assert "1 green" in output
