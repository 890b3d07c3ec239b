"""The processes that a process has started, as the system sees them, and a child that ends when its parent does."""

import ctypes
import signal
from pathlib import Path

SYSTEM = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """From now on this process gets a signal when its parent dies, killed or not; nothing happens where the system is not Linux."""
    if hasattr(SYSTEM, "prctl"):
        SYSTEM.prctl(PR_SET_PDEATHSIG, number)


def children_of(pid: int, command: str = "") -> list[int]:
    """Its living children, or those of them whose command line has these words in it."""
    folders = [folder for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    own = [folder for folder in folders if parent_of(int(folder.name)) == pid]
    return [int(folder.name) for folder in own if command in _command(folder)]


def parent_of(pid: int) -> int | None:
    """Who has started it, or who has taken it over; nobody if it is gone."""
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def _command(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
