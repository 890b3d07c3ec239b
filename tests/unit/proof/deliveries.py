"""Small repositories with a base and a delivery, and the proof of it."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pointsman._shared.git import git, text
from pointsman.proof.execution import CommandRunner, Furnishing
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover
from pointsman.proof.snapshot import Repository
from pointsman.proof.verdict import Wishes
from pointsman.sandbox import Limits
from tests.helpers.limits import scaled

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
UNITTEST = (sys.executable, "-m", "unittest")
TEST_CALC = """import unittest

from calc import add, double


class TestCalc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_double(self):
        self.assertEqual(double(2), 4)
"""
CALC = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n",
    "test_calc.py": TEST_CALC,
}
FIXED = {"calc.py": "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return a * 2\n"}


async def delivered(
    folder: Path, base: Mapping[str, str], change: Mapping[str, str | None]
) -> tuple[Repository, str, str]:
    """A repository with two commits; None removes a file, `-> x` makes a link to x."""
    await git(folder.parent, "init", "-q", "-b", "main", str(folder))
    (folder / ".git" / "info" / "attributes").write_text("* !working-tree-encoding !filter !eol !ident\n")
    first = await commit(folder, base)
    second = await commit(folder, change)
    bare = folder.parent / f"{folder.name}.git"
    await git(folder.parent, "clone", "-q", "--bare", str(folder), str(bare))
    return Repository(bare), first, second


async def commit(folder: Path, files: Mapping[str, str | None]) -> str:
    """One more commit."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
            if path.parent != folder and not any(path.parent.iterdir()):
                path.parent.rmdir()
        elif content.startswith("-> "):
            path.symlink_to(content[3:])
        else:
            path.write_text(content)
    await git(folder, "add", "-A", "-f")
    await git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    return await text(folder, "rev-parse", "HEAD")


async def prove(  # noqa: PLR0917
    folder: Path,
    base: Mapping[str, str],
    change: Mapping[str, str | None],
    commands: Sequence[Sequence[str]] = (UNITTEST,),
    wishes: Wishes | None = None,
    held_out: Mapping[str, str] | None = None,
) -> Proof:
    """The proof of a change."""
    repository, first, second = await delivered(folder / "user", base, change)
    runner = CommandRunner(repository, folder / "proof", Furnishing(limits=Limits(seconds=scaled(60))))
    request = ProofRequest(
        first,
        second,
        tuple(map(tuple, commands)),
        wishes=wishes or Wishes(),
        held_out={name: content.encode() for name, content in (held_out or {}).items()},
    )
    return await Prover(repository, runner, Baselines()).prove(request)
