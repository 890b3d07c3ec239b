"""The real proof on the resulting tree: what is right alone and wrong together, and work that wants to judge itself."""

from pathlib import Path

import pytest

from pointsman.landing.integrator import Integrator, Place
from pointsman.landing.proposals import Proposals
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryState
from tests.unit.landing.queues import Scene, git, scene

pytestmark = pytest.mark.timeout(180)
PROJECT = '[proof]\nverify = ["python3 -m unittest discover -q"]\n[deliver]\nonto = "main"\n'
TEST = "import unittest\nfrom {module} import {name}\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual({name}(), 1)\n"
FILES = {
    "pointsman.toml": PROJECT,
    "lib.py": "def old():\n    return 1\n",
    "test_lib.py": TEST.format(module="lib", name="old"),
}


async def land(there: Scene) -> None:
    """Rounds of the integrator with its real proof."""
    integrator = Integrator("one", Place(there.root, there.folder), Proposals(there.folder, {}))
    while await integrator.round(there.client):
        pass


def kind_of(there: Scene, entry: str) -> EntryEvent | None:
    found = there.landing.entries[entry].finding
    return found.kind if found is not None else None


async def test_two_that_are_right_alone_and_wrong_together_do_not_land_together(tmp_path: Path) -> None:
    there = scene(tmp_path, FILES)
    bumped = {"lib.py": "def old():\n    return 1\n\n\ndef unused():\n    return 2\n"}
    first = there.enqueue(1, bumped)
    caller = {"user.py": "import lib\n\n\ndef use():\n    return 1 if not hasattr(lib, 'unused') else 2\n"}
    second = there.enqueue(2, {**caller, "test_user.py": TEST.format(module="user", name="use")})
    await land(there)
    assert (there.status(first), there.status(second)) == (EntryState.LANDED, EntryState.WAITING)
    assert kind_of(there, second) is EntryEvent.PROOF_FAILED
    assert "user.py" not in git(there.folder, "ls-tree", "--name-only", "main").splitlines()
    ((_, link),) = there.landing.started
    assert "test_user" in link.intent


WORKS = {
    "its own command": {"pointsman.toml": PROJECT.replace("python3 -m unittest discover -q", "true"), "lib.py": "def old():\n    return 2\n"},
    "its own test": {"test_lib.py": TEST.format(module="lib", name="old").replace("1)", "2)"), "lib.py": "def old():\n    return 2\n"},
    "no test at all": {"test_lib.py": "", "lib.py": "def old():\n    return 2\n"},
}  # fmt: skip


@pytest.mark.parametrize("what", WORKS)
async def test_work_that_brings_along_what_judges_it_does_not_land(what: str, tmp_path: Path) -> None:
    there = scene(tmp_path, FILES)
    entry = there.enqueue(1, WORKS[what])
    await land(there)
    assert there.status(entry) in (EntryState.WAITING, EntryState.ASKED)
    assert git(there.folder, "show", "main:lib.py") == FILES["lib.py"].strip()


async def test_work_that_lets_itself_onto_another_branch_is_not_let_by_its_own_word(tmp_path: Path) -> None:
    there = scene(tmp_path, FILES)
    git(there.folder, "branch", "release")
    opened = PROJECT.replace('onto = "main"', 'onto = "release"')
    entry = there.enqueue(1, {"pointsman.toml": opened}, target="release")
    await land(there)
    found = there.landing.entries[entry].finding
    assert found is not None
    assert (there.status(entry), found.kind) == (EntryState.ASKED, EntryEvent.BLOCKED)
    assert "release is not among the branches" in found.text
