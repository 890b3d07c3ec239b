"""The README as a new user types it: its first block word for word, and its other commands as far as no model is asked.

What is replaced, and nothing else: installing (the commands are on the PATH already), the folder and the words of the
task, which the reader fills in, and the answer to the question of `init`, which asks on a terminal only. `claude` and
`codex` are programs of that name that play every role without a model.
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.commands import ROOT, finished
from tests.unit.worker.repositories import repository

README = (ROOT / "README.md").read_text()
AGENT = Path(__file__).parent / "agents" / "calc_crew.py"
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    ".gitignore": "__pycache__/\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": (
        "import unittest\n\nfrom calc import add\n\n\nclass AddTest(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n"
    ),
}
REPLACED = {
    "uv tool install .": "command -v pointsman",
    "cd your/repository": "cd repository",
    "pointsman init": "pointsman init --yes",
}
MAKE_TARGETS = re.compile(r"^([a-z-]+):", re.MULTILINE)


def blocks() -> list[list[str]]:
    """The commands of each block of the README that starts with one, without their comments."""
    found = [body.splitlines() for body in re.findall(r"^```\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)]
    lines = [[re.sub(r"\s+#\s.*", "", line).strip() for line in block] for block in found]
    return [block for block in lines if block[0].startswith(("uv ", "make ", "pointsman "))]


def typed(command: str) -> str:
    """A command with what the reader fills in."""
    return REPLACED.get(command, command).replace("…", "fix the add function in calc.py")


def options() -> Iterator[tuple[str, str]]:
    """Every option that a command of the README names, with the words of the command before it."""
    for command in [command for block in blocks() for command in block if command.startswith("pointsman ")]:
        words = shlex.split(command)
        name = " ".join(words[1:3]) if words[1] == "proof" else words[1]
        yield from ((name, word) for word in words if word.startswith("--"))


@pytest.mark.timeout(300)
def test_the_first_block_of_the_readme_ends_in_a_proven_branch(tmp_path: Path) -> None:
    folder, programs = tmp_path / "repository", tmp_path / "programs"
    asyncio.run(repository(folder, FILES))
    programs.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text(f"#!{sys.executable}\n{AGENT.read_text()}")
        (programs / name).chmod(0o755)
    (tmp_path / "home").mkdir()
    here = {name: value for name, value in os.environ.items() if not name.startswith(("POINTSMAN_", "XDG_", "OTEL_"))}
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    author = {f"GIT_{who}_{what}": "me@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    proof = next(command for command in blocks()[-1] if command.startswith("pointsman proof run"))
    route = next(command for command in blocks()[-1] if command.startswith("pointsman route"))
    script = [
        *map(typed, blocks()[0]),
        "git checkout -q $(git branch --format='%(refname:short)' --list 'pointsman/*')",
    ]
    done = subprocess.run(
        ["sh", "-exc", "\n".join((*script, proof, route))],
        cwd=tmp_path, env={**here, **author, "HOME": str(tmp_path / "home"), "PATH": path},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"^COMPLETE  run_\w+, PROVEN$", done.stdout, re.MULTILINE), done.stdout
    assert "return a + b" in (folder / "calc.py").read_text()
    assert "crew: planner claude" in done.stdout


def test_every_command_and_option_of_the_readme_exists() -> None:
    helps: dict[str, str] = {}
    for name, option in options():
        if name not in helps:
            code, helps[name] = finished(*name.split(), "--help", COLUMNS="200")
            assert code == 0, name
        assert f"{option} " in helps[name], f"pointsman {name} {option}"
    assert set(helps) >= {"plan", "run", "proof run"}
    made = MAKE_TARGETS.findall((ROOT / "Makefile").read_text())
    assert {line.split()[1] for block in blocks() for line in block if line.startswith("make ")} <= set(made)
