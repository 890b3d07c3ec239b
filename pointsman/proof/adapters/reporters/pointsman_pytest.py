"""A pytest plugin that writes one JSON line per test; it is copied out of this package and needs only pytest."""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

_FOLDER = os.environ.pop("POINTSMAN_REPORTS", "")
_SELECTION = os.environ.pop("POINTSMAN_SELECTION", "")
_SEED = os.environ.pop("POINTSMAN_SEED", "")
_TEXT_LENGTH = 1000
_TREE_FIRST = [path for path in os.environ.pop("POINTSMAN_TREE_FIRST", "").split(os.pathsep) if path]
# The tree comes before what is installed; done only now, no file of the tree could stand for pytest itself.
sys.path[:0] = _TREE_FIRST
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (*_TREE_FIRST, os.environ.get("PYTHONPATH", ""))))
os.environ.pop("PYTHONSAFEPATH", None)


class _Reporter:
    """Writes every line at once, so that a process that dies leaves a report without its end."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._doctests: set[str] = set()
        self._count = 0

    def _write(self, line: dict[str, object]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def _test(self, node_id: str, outcome: str, message: str = "", seconds: float = 0.0) -> None:
        self._count += 1
        path = node_id.split("::", maxsplit=1)[0]
        line = {"id": node_id, "outcome": outcome, "message": message[-_TEXT_LENGTH:], "seconds": seconds, "file": path}
        self._write({**line, "in_source": node_id in self._doctests})

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Writes the call of a test, and what went wrong before or after it."""
        expected = hasattr(report, "wasxfail")
        if report.failed:
            outcome = "failed" if report.when == "call" else "error"
            self._test(report.nodeid, outcome, report.longreprtext, report.duration)
        elif report.skipped:
            self._test(report.nodeid, "xfailed" if expected else "skipped", "", report.duration)
        elif report.when == "call":
            self._test(report.nodeid, "passed", "", report.duration)

    def pytest_collectreport(self, report: Any) -> None:
        """Writes a file that cannot be collected."""
        if report.failed:
            self._test(report.nodeid or "collection", "error", report.longreprtext)
        elif report.skipped:
            self._test(report.nodeid, "skipped")

    def pytest_deselected(self, items: Any) -> None:
        """Writes tests that options left out."""
        for item in items:
            if not _left_out(item.nodeid):
                self._test(item.nodeid, "deselected")

    def pytest_itemcollected(self, item: Any) -> None:
        """Remembers doctests, which stand in source files."""
        if type(item).__name__ == "DoctestItem":
            self._doctests.add(item.nodeid)

    def pytest_unconfigure(self) -> None:
        """Ends the report."""
        self._write({"finished": self._count})
        os.close(self._file)


def _left_out(node_id: str) -> bool:
    return (
        bool(_SELECTION) and node_id not in _selected()[0] and node_id.split("::", maxsplit=1)[0] not in _selected()[1]
    )


def _selected() -> tuple[set[str], set[str]]:
    if "ids" not in _CACHE:
        wanted = json.loads(Path(_SELECTION).read_text(encoding="utf-8"))
        _CACHE["ids"] = (set(wanted["ids"]), set(wanted["files"]))
    return _CACHE["ids"]


_CACHE: dict[str, tuple[set[str], set[str]]] = {}


def _shuffle(items: Any) -> None:
    """Another order of files, of classes in a file and of tests in a class; what shares a fixture stays together."""
    items.sort(key=lambda item: [_rank(part) for part in _parts(item.nodeid)])


def _rank(text: str) -> str:
    return hashlib.sha256(f"{_SEED} {text}".encode()).hexdigest()


def _parts(node_id: str) -> tuple[str, str, str]:
    path, _, rest = node_id.partition("::")
    return path, f"{path}::{rest.partition('::')[0] if '::' in rest else ''}", node_id


def pytest_collection_modifyitems(config: Any, items: Any) -> None:
    """Keeps the selected tests only, in another order where a seed is given."""
    if _SEED:
        _shuffle(items)
    if _SELECTION:
        out = [item for item in items if _left_out(item.nodeid)]
        items[:] = [item for item in items if not _left_out(item.nodeid)]
        config.hook.pytest_deselected(items=out)


def pytest_configure(config: Any) -> None:
    """Starts the report, in the process that controls the others."""
    if _FOLDER and not hasattr(config, "workerinput"):
        path = Path(_FOLDER) / f"pytest-{os.getpid()}.jsonl"
        config.pluginmanager.register(_Reporter(path), "pointsman-reporter")
