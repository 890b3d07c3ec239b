"""Seed 004: files that the client side writes are whole or not there."""

import subprocess
import sys
from pathlib import Path

from pointsman._shared.files import atomic_write

INTERRUPTED = """
import resource, signal, sys
from pathlib import Path
from pointsman._shared.files import atomic_write
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if sys.argv[2] == "killed" else signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
atomic_write(Path(sys.argv[1]), "new" * 100_000)
"""


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "state.json"
    atomic_write(target, '{"a": "文"}')
    atomic_write(target, '{"b": 1}')
    assert target.read_text() == '{"b": 1}'
    assert [path.name for path in target.parent.iterdir()] == ["state.json"]


def interrupted(target: Path, how: str) -> int:
    """Write too much for the limit of the process; how it ended."""
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(target), how], check=False, stderr=subprocess.DEVNULL
    ).returncode


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    target.write_text("old")
    assert interrupted(target, "refused") != 0
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_process_that_is_killed_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    target.write_text("old")
    assert interrupted(target, "killed") < 0
    assert target.read_text() == "old"
