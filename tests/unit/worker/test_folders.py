"""Work folders: gone at the end, left by kill -9 only, and then removed without touching those of live workers."""

import os
import subprocess
import sys
from pathlib import Path

from pointsman.worker.folders import remove_abandoned, work_folder

HOLD = (
    "import sys; from pathlib import Path; from pointsman.worker.folders import work_folder\n"
    "with work_folder(Path(sys.argv[1]), 'job') as place:\n"
    "    (place / 'file').write_text('12345'); print(place, flush=True); sys.stdin.read()\n"
)


def worker_in(parent: Path) -> "tuple[subprocess.Popen[str], Path]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: "subprocess.Popen[str]", *, kill: bool) -> None:
    if kill:
        process.kill()
    process.communicate()


def test_a_folder_is_gone_at_its_end_with_its_lock(tmp_path: Path) -> None:
    with work_folder(tmp_path, "job") as place:
        (place / "kept").mkdir()
        (place / "kept" / "file").write_text("x")
        (place / "kept").chmod(0o500)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_worker_left_is_removed_and_what_a_live_one_has_is_not(tmp_path: Path) -> None:
    live, here = worker_in(tmp_path)
    dead, left = worker_in(tmp_path)
    try:
        end(dead, kill=True)
        (found,) = remove_abandoned(tmp_path, dry_run=True)
        assert (found.path, found.size_bytes, left.exists()) == (left, 5, True)
        (found,) = remove_abandoned(tmp_path)
        assert (found.path, found.error, left.exists()) == (left, "", False)
        assert (here / "file").read_text() == "12345"
    finally:
        end(live, kill=False)
    assert remove_abandoned(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_lock_and_a_lock_without_a_folder_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "early.lock").touch()
    before = set(tmp_path.iterdir())
    assert [one.path.name for one in remove_abandoned(tmp_path, dry_run=True)] == ["old"]
    assert set(tmp_path.iterdir()) == before
    assert [one.path.name for one in remove_abandoned(tmp_path)] == ["old"]
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    for folder in (outside, work):
        folder.mkdir()
    (work / "link").symlink_to(outside)
    assert remove_abandoned(work) == []
    assert outside.exists()


def test_where_nothing_was_ever_done_nothing_is_left(tmp_path: Path) -> None:
    assert list(remove_abandoned(tmp_path / "missing")) == []


def test_folders_of_one_name_do_not_meet(tmp_path: Path) -> None:
    with work_folder(tmp_path, "job") as one, work_folder(tmp_path, "job") as other:
        assert one != other
        assert remove_abandoned(tmp_path) == []


def test_folders_thousands_deep_without_rights_are_removed_too(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("stays")
    with work_folder(tmp_path / "work", "x") as place:
        (place / "link").symlink_to(outside)
        opened = os.open(place, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=opened)
            inner = os.open("d", os.O_RDONLY, dir_fd=opened)
            os.fchmod(opened, 0o500)
            os.close(opened)
            opened = inner
        os.close(opened)
    assert not place.exists()
    assert outside.read_text() == "stays"
