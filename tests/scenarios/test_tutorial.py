"""The tutorial as a new user plays it: its first run, and with `make tutorial` every command, with an audit after each."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pointsman.audit.stores import TOGETHER, audit_stores
from pointsman.services.chassis.core.config import StoreSettings
from tests.scenarios.commands import ROOT, Running

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
PLAYS_ALL = "POINTSMAN_WHOLE_TUTORIAL" in os.environ
WAITS_FOR_A_PERSON = 4
SERVES = {"pointsman up": " up at ", "pointsman agent": "working as"}
"""Commands that go on until they are stopped, and what they say when they are ready."""
SAID_FIRST = ("+    return a + b",)
SAID_LATER = (
    "T2 rejected by the verifier",
    "names files that did not change: calc.py",
    "Only a person can accept this work (T1: no command proves A1 and no reviewer said yes)",
    "transitions, numbered without gap, chained, all in the table; ends COMPLETE",
)
_CODE = re.compile(r"^```(\w*)\n(.*?)^```$|`(pointsman [^`]+)`", re.MULTILINE | re.DOTALL)
_STATEMENT = re.compile(r"(?:.*<<'END'\n(?:.*\n)*?END|(?:.*\\\n)*.*)\n")


def commands() -> Iterator[str]:
    """Every command of the tutorial: shell blocks, what follows a prompt, and what a sentence names."""
    for language, body, named in _CODE.findall(TUTORIAL):
        if language == "sh":
            yield from filter(None, (statement.strip() for statement in _STATEMENT.findall(body)))
        elif language == "console":
            yield from (line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ "))
        elif named:
            yield " ".join(named.split())


class Player:
    """A user with an empty home, who types one command after the other."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        self._place = folder / "place"
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.run_id = ""
        self.said: list[str] = []
        here = {
            name: value for name, value in os.environ.items() if not name.startswith(("POINTSMAN_", "XDG_", "OTEL_"))
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**here, "HOME": str(self.home), "TMPDIR": str(folder), "PATH": path}

    def play(self, command: str) -> None:
        """Type a command, and remember the run that it is about."""
        typed = self._typed(command)
        ready = SERVES.get(" ".join(typed.split()[:2]))
        if ready:
            self._start(typed, ready)
        else:
            self._finish(typed)

    def _typed(self, command: str) -> str:
        """The command with what the reader has to fill in, and on a port that nobody else has."""
        filled = re.sub(r"\bRUN\b|\brun_[0-9a-z]+", self.run_id, command).replace("…", "once more")
        filled = filled.replace("make run", "pointsman demo")
        filled = filled.replace("pointsman init", "pointsman init --yes")  # it asks on a terminal only
        return re.sub(r"^pointsman up\b", "pointsman up --port 0", filled)

    def _start(self, typed: str, ready: str) -> None:
        process = Running(("-c", f"exec {typed}"), self._environment, self.folder, program=("sh",))
        self._stack.callback(process.stop)
        process.line_with(ready)

    def _finish(self, typed: str) -> None:
        script = f'{typed}\nstatus=$?\npwd > "{self._place}"\nexit $status'
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        waits = typed.startswith(("pointsman run", "pointsman watch")) and done.returncode == WAITS_FOR_A_PERSON
        assert done.returncode == 0 or waits, f"{typed}\n{said}"
        self.folder = Path(self._place.read_text().strip())
        self.said.append(said)
        started = re.search(r"^run (run_\w+)", said, re.MULTILINE)
        self.run_id = started[1] if started else self.run_id


def first_run() -> list[str]:
    """From the empty folder to the branch with the accepted work, then the audit of everything."""
    found = list(commands())
    ends = next(number for number, command in enumerate(found) if command.startswith("git diff "))
    return [*found[found.index("make run") + 1 : ends + 1], "pointsman audit --all"]


async def audit(data: Path, command: str) -> None:
    """Every promise of the stores holds after a command."""
    found = await audit_stores(StoreSettings(data=data))
    violations = [violation for item in found.values() for violation in item.violations]
    assert TOGETHER in found
    assert violations == [], command


@pytest.mark.timeout(900)
async def test_the_commands_of_the_tutorial_work_and_leave_stores_that_hold(tmp_path: Path) -> None:
    assert "pointsman.cli demo" in (ROOT / "Makefile").read_text()
    played = list(commands()) if PLAYS_ALL else first_run()
    with ExitStack() as stack:
        player = Player(tmp_path, stack)
        data = player.home / ".local" / "share" / "pointsman"
        for command in played:
            if "--agent " in command:
                continue  # it needs an agent with a model
            player.play(command)
            if PLAYS_ALL and data.exists():
                await audit(data, command)
    await audit(data, played[-1])
    said = "".join(player.said)
    for words in (*SAID_FIRST, *(SAID_LATER if PLAYS_ALL else ())):
        assert words in said
    assert said.count("COMPLETE  run_") >= (4 if PLAYS_ALL else 1)


def test_the_commands_of_the_tutorial_are_found() -> None:
    found = list(commands())
    starts = {" ".join(command.split()[:2]) for command in found}
    assert starts >= {"make run", "pointsman answer", "pointsman watch", "pointsman cancel", "pointsman deliver"}
    assert starts >= {
        f"pointsman {name}" for name in ("up", "agent", "run", "runs", "show", "trace", "audit", "agents")
    }
    assert any(command.startswith("cat > ../agent.sh <<'END'\n") and command.endswith("\nEND") for command in found)
    assert shutil.which("sh")
