"""Which commands run tests."""

from collections.abc import Sequence
from pathlib import PurePath

_RUNNERS = frozenset(
    {"pytest", "py.test", "unittest", "tox", "nox", "jest", "vitest", "mocha", "ava", "nextest", "ctest"}
)
"""Words that stand for a test runner wherever they are in a command line."""
_TASKS = frozenset({"test", "tests", "check", "verify", "--test"})
_BUILDERS = frozenset(
    {
        "go",
        "cargo",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "node",
        "make",
        "just",
        "mvn",
        "mvnw",
        "gradle",
        "gradlew",
        "dotnet",
    }
)
"""Programs that run tests when one of their tasks is named."""
_OURS = ("pointsman", "proof", "run")


def runs_tests(command: Sequence[str]) -> bool:
    """Whether a command line starts a test runner, by itself or behind another program such as `uv run` or `sh -c`."""
    words = [word for part in command for word in part.split()]
    names = [PurePath(word).name for word in words]
    tasks = any(word.partition(":")[0] in _TASKS for word in words)
    return any(name in _RUNNERS for name in names) or (tasks and any(name in _BUILDERS for name in names))


def is_bare_test_run(command: Sequence[str]) -> bool:
    """Whether a command line runs tests otherwise than by `pointsman proof run`."""
    words = [word for part in command for word in part.split()]
    names = tuple(PurePath(word).name for word in words[:2]) + tuple(words[2:3])
    return names != _OURS and runs_tests(command)
