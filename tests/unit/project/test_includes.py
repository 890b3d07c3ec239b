"""Includes: files that git ignores, copied from the user's tree, and nothing from outside of it."""

from pathlib import Path

import pytest

from pointsman.project.includes import IncludeTooLarge, copy_includes


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_files_globs_and_folders_are_copied_and_nothing_is_overwritten(tmp_path: Path) -> None:
    user, tree = tmp_path / "user", tmp_path / "tree"
    write(user, ".env.test", "config/a.local", "config/b.txt", "data/x/y", "other")
    write(tree, "kept")
    (tree / ".env.test").write_text("tracked")
    assert copy_includes(user, tree, ["*.test", ".env.test", "config/*.local", "data", "none"]) == (
        "config/a.local",
        "data/x/y",
    )
    assert (tree / ".env.test").read_text() == "tracked"
    assert (tree / "data/x/y").read_text() == "data/x/y"
    assert not (tree / "other").exists()


def test_a_link_out_of_either_tree_is_not_followed(tmp_path: Path) -> None:
    user, tree, outside = tmp_path / "user", tmp_path / "tree", tmp_path / "outside"
    write(user, "web/.env", ".git/config")
    write(outside, "secret")
    tree.mkdir()
    (user / "link").symlink_to(outside / "secret")
    (user / "folder").symlink_to(outside)
    (tree / "web").symlink_to(outside)
    assert copy_includes(user, tree, ["link", "folder", "folder/*", "web/.env", "**/config"]) == ()
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointsman.project.includes.MAX_FILES", 2)
    write(tmp_path / "user", "a/1", "a/2", "a/3")
    (tmp_path / "tree").mkdir()
    with pytest.raises(IncludeTooLarge, match="fetch them in setup"):
        copy_includes(tmp_path / "user", tmp_path / "tree", ["a"])
