"""Stands for `python -m unittest` and writes one JSON line per test; it needs only the standard library."""

import hashlib
import inspect
import json
import os
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FOLDER = os.environ.pop("POINTSMAN_REPORTS", "")
_SELECTION = os.environ.pop("POINTSMAN_SELECTION", "")
_SEED = os.environ.pop("POINTSMAN_SEED", "")
_TEXT_LENGTH = 1000
_TREE_FIRST = [path for path in os.environ.pop("POINTSMAN_TREE_FIRST", "").split(os.pathsep) if path]
os.environ.pop("PYTHONSAFEPATH", None)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (*_TREE_FIRST, os.environ.get("PYTHONPATH", ""))))


class _Lines:
    """The report: every line is written at once, so that a process that dies leaves it without its end."""

    def __init__(self) -> None:
        path = Path(_FOLDER) / f"unittest-{os.getpid()}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.count = 0

    def write(self, line: dict[str, object]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def test(self, test: Any, outcome: str, message: str = "") -> None:
        self.count += 1
        self.write({"id": _id(test), "outcome": outcome, "message": message[-_TEXT_LENGTH:], "file": _file(test)})


def _id(test: Any) -> str:
    return str(test.id()).replace("unittest.loader._FailedTest.", "")


def _file(test: Any) -> str:
    try:
        return os.path.relpath(inspect.getfile(type(test)), Path.cwd())
    except (TypeError, ValueError):
        return ""


class _Result(unittest.TextTestResult):
    """The usual result, reported line by line."""

    def startTestRun(self) -> None:  # noqa: N802 - the name is unittest's
        super().startTestRun()
        self.lines = _Lines()

    def stopTestRun(self) -> None:  # noqa: N802
        super().stopTestRun()
        self.lines.write({"finished": self.lines.count})

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        super().addSuccess(test)
        self.lines.test(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self.lines.test(test, "failed", self.failures[-1][1])

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self.lines.test(test, "error", self.errors[-1][1])

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self.lines.test(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self.lines.test(test, "xfailed")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self.lines.test(test, "failed", "it passed although a failure was expected")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.lines.test(test, "failed", str(err[1]))


class _Runner(unittest.TextTestRunner):
    """Runs the selected tests only."""

    resultclass = _Result  # type: ignore[assignment]

    def run(self, test: Any) -> Any:
        if _SELECTION:
            wanted = json.loads(Path(_SELECTION).read_text(encoding="utf-8"))
            test = unittest.TestSuite(
                one for one in _flat(test) if _id(one) in wanted["ids"] or _file(one) in wanted["files"]
            )
        return super().run(_shuffled(test) if _SEED else test)


def _shuffled(suite: Any) -> Any:
    """The tests in another order; those of a class stay together, because they share its set-up."""

    def rank(test: Any) -> list[str]:
        names = (f"{type(test).__module__}.{type(test).__qualname__}", _id(test))
        return [hashlib.sha256(f"{_SEED} {name}".encode()).hexdigest() for name in names]

    return unittest.TestSuite(sorted(_flat(suite), key=rank))


def _flat(suite: Any) -> Iterator[Any]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from _flat(one)
        else:
            yield one


if __name__ == "__main__":
    sys.path[:0] = [*_TREE_FIRST, str(Path.cwd())]
    unittest.main(module=None, argv=["python -m unittest", *sys.argv[1:]], testRunner=_Runner)
