"""Tests that another author wrote before the code: the author of the code may not touch them, and they prove it."""

from dataclasses import dataclass

from pointsman.proof.protection.rust_tests import split_source
from pointsman.proof.results import TestResult
from pointsman.proof.snapshot import Repository, Snapshot
from pointsman.proof.tree_plan import TreePlan


@dataclass(frozen=True, slots=True)
class TestsFirst:
    """Protected files that came before the code, and what became of them."""

    paths: frozenset[str] = frozenset()
    altered: tuple[str, ...] = ()
    """Those that the delivery does not have as they were written."""
    alone: bool = False
    """Whether the delivery changes no other protected file, so that every new test is one of them."""

    __test__ = False

    def holds(self, test: TestResult) -> bool:
        """Whether a new test of the delivery is one that came before the code."""
        return bool(self.paths) and (test.file in self.paths if test.file else self.alone)


async def tests_first(repository: Repository, written: TreePlan, plan: TreePlan) -> TestsFirst:
    """What a delivery did to the tests of another plan over the same base."""
    paths = frozenset(change.path for change in written.protected if not change.keys)
    altered = [
        path for path in sorted(paths) if not await _is_same(repository, written.delivered, plan.delivered, path)
    ]
    return TestsFirst(paths, tuple(altered), {change.path for change in plan.protected} <= paths)


async def _is_same(repository: Repository, written: Snapshot, delivered: Snapshot, path: str) -> bool:
    """Whether a file is as it was written; of a Rust source, its test modules."""
    before, after = written.entries.get(path), delivered.entries.get(path)
    if before == after or not path.endswith(".rs") or before is None or after is None:
        return before == after
    texts = [(await repository.read(entry) or b"").decode(errors="replace") for entry in (before, after)]
    modules = [split_source(text).tests for text in texts]
    return bool(modules[0]) and modules[0] == modules[1]
