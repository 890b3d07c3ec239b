"""A project file is tried in a clean tree, with an environment of its own: never the user's, never the user's clone."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from pointsman.cli.session.project_check import Trial, try_project
from pointsman.project import read_project_file
from pointsman.project.setup_run import SetupFailed
from pointsman.proof.baseline import Baseline, State
from tests.unit.worker.repositories import commit, repository

PACKAGE = {"src/pack/__init__.py": "def who():\n    return 'committed'\n"}
TEST = {
    "tests/test_pack.py": (
        "import pathlib, subprocess, sys, unittest\nimport pack\n\n\nclass PackTest(unittest.TestCase):\n"
        "    def test_imports_this_tree(self):\n"
        "        here = pathlib.Path(__file__).resolve().parents[1]\n"
        "        self.assertTrue(pathlib.Path(pack.__file__).resolve().is_relative_to(here), pack.__file__)\n"
        "    def test_says_what_was_committed(self):\n"
        "        self.assertEqual(pack.who(), 'committed')\n"
        "    def test_a_child_imports_this_tree_too(self):\n"
        "        code = 'import pack; print(pack.who())'\n"
        "        printed = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "        self.assertEqual(printed.stdout.strip(), 'committed', printed.stderr)\n"
    )
}
UNITTEST = ("python3", "-m", "unittest", "discover", "-q", "-s", "tests")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))


async def tried(folder: Path, base: str, *commands: tuple[str, ...], file: str = "") -> tuple[Baseline, list[str]]:
    said: list[str] = []
    found = await try_project(Trial(folder, base, read_project_file(file.encode()), commands), said.append)
    return found, said


async def install_editable(user: Path, environment: Path) -> None:
    """What `pip install -e` leaves in the user's own environment: a path file that leads to the user's clone."""
    make = await asyncio.create_subprocess_exec(sys.executable, "-m", "venv", "--without-pip", str(environment))
    assert await make.wait() == 0
    packages = next((environment / "lib").glob("python*/site-packages"))
    (packages / "__editable__.pack.pth").write_text(f"{user / 'src'}\n")


@pytest.mark.parametrize("level", ["none", "landlock", "namespaces"])
async def test_a_package_in_the_src_layout_is_imported_from_the_clean_tree_and_not_from_the_users_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    monkeypatch.setenv("POINTSMAN_SANDBOX_MAX_LEVEL", level)
    user = tmp_path / "user"
    base = await repository(user, {**PACKAGE, **TEST})
    await install_editable(user, tmp_path / "venv")
    (user / "src/pack/__init__.py").write_text("def who():\n    return 'not committed'\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    found, _ = await tried(user, base, UNITTEST)
    assert [one.describe() for one in found.commands] == [f"`{' '.join(UNITTEST)}`: 3 tests: 3 green, 0 red"]


async def test_a_set_up_with_an_installed_copy_still_proves_the_tree(tmp_path: Path) -> None:
    copy = "sh -c 'cp -r src/pack .venv/lib/python3*/site-packages/'"
    file = f'[workspace]\nsetup = ["python3 -m venv --without-pip .venv", "{copy}"]\n'
    user = tmp_path / "user"
    base = await repository(user, {**PACKAGE, **TEST, ".gitignore": ".venv\n"})
    found, said = await tried(user, base, ("python", *UNITTEST[1:]), file=file)
    assert found.commands[0].describe().endswith("3 tests: 3 green, 0 red")
    assert len(said) == 2
    later = await commit(user, {"src/pack/__init__.py": "def who():\n    return 'changed'\n"})
    found, said = await tried(user, later, ("python", *UNITTEST[1:]), file=file)
    assert (found.state, len(found.commands[0].red)) == (State.RED, 2)


async def test_a_baseline_is_kept_for_its_commit_and_commands(tmp_path: Path) -> None:
    counted = ("sh", "-c", f"echo x >> {tmp_path / 'count'}")
    user = tmp_path / "user"
    base = await repository(user, {"a": ""})
    file = f'[workspace]\nread = ["{tmp_path}"]\n'
    first, _ = await tried(user, base, counted, file=file)
    again, _ = await tried(user, base, counted, file=file)
    assert first == again
    assert len(list((tmp_path / "data" / "worker" / "baselines").iterdir())) == 1


async def test_includes_of_the_users_tree_are_there(tmp_path: Path) -> None:
    user = tmp_path / "user"
    base = await repository(user, {"a": "", ".gitignore": ".env.test\n"})
    (user / ".env.test").write_text("SECRET=1\n")
    found, _ = await tried(
        user, base, ("grep", "-q", "SECRET", ".env.test"), file='[workspace]\ninclude = [".env.*"]\n'
    )
    assert found.state is State.GREEN
    without, _ = await tried(user, base, ("grep", "-q", "SECRET", ".env.test"))
    assert without.state is State.RED


async def test_a_set_up_that_fails_is_no_baseline(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", {"a": ""})
    with pytest.raises(SetupFailed, match="set-up failed: `false`: it ended with exit code 1"):
        await tried(tmp_path / "user", base, ("true",), file='[workspace]\nsetup = ["false"]\n')


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("no-such-runner",), "`no-such-runner` cannot be started"),
        (("sh", "-c", "no-such-runner"), "`sh` cannot be started"),
        (("python3", "-m", "unittest", "discover", "-q", "-s", "empty"), "no test ran"),
        (("python3", "-c", "input()"), "it asks for input"),
        (("sleep", "3600"), "[proof] timeout gives a command more time"),
    ],
    ids=["no program", "exit 127", "no tests", "asks", "never ends"],
)
async def test_every_kind_of_wrong_proof_is_broken_before_anything_is_submitted(
    tmp_path: Path, command: tuple[str, ...], words: str
) -> None:
    base = await repository(tmp_path / "user", {"a": "", "empty/__init__.py": ""})
    found, _ = await tried(tmp_path / "user", base, command, file="[proof]\ntimeout = 2\n")
    assert found.state is State.BROKEN, found
    assert words in found.commands[0].reason
