"""Reads held-out checks: a folder, or a path in a commit, whose files are laid over the tree at proof time only."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from pointsman._shared.git import GitFailed, git, text
from pointsman.proof.results import RED, TestReport

MAX_FILES = 2000
MAX_BYTES = 64 * 1024 * 1024


_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMES = {
    "pytest": re.compile(r"::(\w+)(?:\[.*\])?$", re.DOTALL),
    "unittest": re.compile(r"\.(\w+)$"),
    "go": re.compile(r"\.((?:Test|Fuzz|Example|Benchmark)\w*)"),
    "cargo": re.compile(r"::(\w+)(?:::case_\w+)?$"),
    "nextest": re.compile(r"::(\w+)(?:::case_\w+)?$"),
}
"""Adapters whose tests have names that stand in their source, and where in the id of a test."""


class NoChecks(Exception):
    """There is nothing to lay over the tree, or it is too much."""


async def read_held_out(place: str, repository: Path, base: str = "") -> dict[str, bytes]:
    """The checks by their path in the tree; `place` is a folder, or `REF:PATH` that the base does not reach."""
    found = _from_folder(Path(place))
    if found is None:
        if ":" not in place:
            raise NoChecks(f"{place} is neither a folder nor REF:PATH")
        found = await _from_commit(place, repository)
        if base and await _reaches(repository, base, place.partition(":")[0]):
            raise NoChecks(
                f"{place}: the base reaches that commit, so an author can read the checks; "
                "keep them on a branch that was never merged, or in a folder outside the repository"
            )
    if not found:
        raise NoChecks(f"{place} holds no file")
    return found


def _from_folder(folder: Path) -> dict[str, bytes] | None:
    if not folder.is_dir():
        return None
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    names = [path for path in paths if ".git" not in path.relative_to(folder).parts]
    if len(names) > MAX_FILES or sum(path.stat().st_size for path in names) > MAX_BYTES:
        raise NoChecks(f"{folder} holds more than {MAX_FILES} files or {MAX_BYTES} bytes")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in names}


def own_checks(report: TestReport, checks: Mapping[str, bytes], known: Collection[str]) -> TestReport:
    """The report without new green tests that no held-out file names: code that is judged could have printed them."""
    pattern = _NAMES.get(report.adapter)
    if pattern is None:
        return report
    words = {word for content in checks.values() for word in _WORD.findall(content.decode(errors="replace"))}

    def is_named(test_id: str) -> bool:
        found = pattern.search(test_id)
        return found is not None and found[1] in words

    relevant = {key: test for key, test in report.tests.items() if key in known or test.outcome in RED or is_named(key)}
    return replace(report, tests=relevant)


async def _reaches(repository: Path, base: str, ref: str) -> bool:
    """Whether a commit is in the history of the base."""
    commit = await text(repository, "rev-parse", f"{ref}^{{commit}}")
    return not await text(repository, "rev-list", "--max-count=1", commit, "--not", base)


async def _from_commit(place: str, repository: Path) -> dict[str, bytes]:
    try:
        listed = await git(repository, "ls-tree", "-r", "-z", "--name-only", place)
    except GitFailed as error:
        raise NoChecks(str(error)) from None
    names = [name for name in listed.decode(errors="surrogateescape").split("\0") if name]
    if len(names) > MAX_FILES:
        raise NoChecks(f"{place} holds more than {MAX_FILES} files")
    top = place.rstrip("/") + ("" if place.endswith(":") else "/")
    return {name: await git(repository, "cat-file", "blob", f"{top}{name}") for name in names}
