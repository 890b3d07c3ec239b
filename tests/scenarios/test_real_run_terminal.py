"""`pointsman run` on a terminal: it shows the state, asks its questions there, and Ctrl-C asks before it leaves."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pointsman.worker.git import git
from tests.helpers.eventually import eventually_now
from tests.helpers.hello_repository import example_repository
from tests.scenarios.born import NURSERY, Born
from tests.scenarios.commands import finished, open_gate, patient

pytestmark = pytest.mark.timeout(150)


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, process: Born, screen: int) -> None:
        self._process = process
        self._screen = screen
        self.text = ""

    def wait_for(self, words: str) -> None:
        """Until these words were shown."""

        def shown() -> bool:
            self._read()
            return words in self.text

        eventually_now(shown, 90)

    def _read(self) -> None:
        with suppress(BlockingIOError, OSError):
            while data := os.read(self._screen, 65536):
                self.text += data.decode(errors="replace")

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._screen, keys.encode())

    def wait(self) -> int:
        """The exit code."""

        def ended() -> bool:
            self._read()
            return self._process.poll() is not None

        eventually_now(ended, 60)
        return self._process.wait()

    def close(self) -> None:
        """End what still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._screen)


@contextmanager
def terminal(*arguments: str, data: Path) -> Iterator[Terminal]:
    screen, ours = os.openpty()
    os.set_blocking(screen, False)
    process = NURSERY.bear_on_terminal(arguments, {**os.environ, "POINTSMAN_DATA": str(data), "TERM": "xterm"}, ours)
    os.close(ours)
    shown = Terminal(process, screen)
    try:
        yield shown
    finally:
        shown.close()


def greeting_on(folder: Path, gate: Path) -> tuple[str, ...]:
    """A task for a coder that waits at a gate."""
    command = patient(gate)
    return ("run", "add a greeting to the hello module", "--action", "--repo", str(folder), "--command", command)


async def test_ctrl_c_asks_and_cancels_the_run(tmp_path: Path) -> None:
    folder = await example_repository(tmp_path)
    command = patient(tmp_path / "gate")
    arguments = ("run", "add a greeting to the hello module", "--action", "--repo", str(folder), "--command", command)
    with terminal(*arguments, data=tmp_path / "data") as shown:
        shown.wait_for("writes the code")
        shown.type("\x03")
        shown.wait_for("[d]etach or [c]ancel")
        shown.type("c\n")
        code = shown.wait()
    assert code == 1, shown.text
    assert "CANCELLED" in shown.text


async def test_a_question_is_asked_at_the_terminal_and_the_run_goes_on(tmp_path: Path) -> None:
    folder = await example_repository(tmp_path)
    await git(folder, "rm", "-q", "-r", "tests")
    await git(folder, "commit", "-q", "-m", "no tests")
    open_gate(tmp_path / "gate")
    command = patient(tmp_path / "gate")
    arguments = ("run", "add a greeting to the hello module", "--action", "--repo", str(folder), "--command", command)
    with terminal(*arguments, data=tmp_path / "data") as shown:
        shown.wait_for("accept, reject?")
        shown.type("accept\n")
        shown.wait_for("in words")
        shown.type("\n")
        code = shown.wait()
    assert code == 0, shown.text
    assert "COMPLETE" in shown.text


async def test_ctrl_c_and_d_leave_the_run_to_a_process_in_the_background(tmp_path: Path) -> None:
    folder, data = await example_repository(tmp_path), tmp_path / "data"
    with terminal(*greeting_on(folder, tmp_path / "gate"), data=data) as shown:
        shown.wait_for("writes the code")
        shown.type("\x03")
        shown.wait_for("[d]etach")
        shown.type("d\n")
        code = shown.wait()
    assert code == 0, shown.text
    assert "goes on with it" in shown.text
    open_gate(tmp_path / "gate")
    run_id = next(word for word in shown.text.split() if word.startswith("run_"))
    code, output = finished("watch", run_id, POINTSMAN_DATA=str(data))
    assert code == 0, output
    assert "failed (attempt" not in output


async def test_a_budget_is_asked_for_where_it_is_raised(tmp_path: Path) -> None:
    folder = await example_repository(tmp_path)
    open_gate(tmp_path / "gate")
    arguments = greeting_on(folder, tmp_path / "gate")
    with terminal(*arguments, "--budget", "assignments=1", data=tmp_path / "data") as shown:
        shown.wait_for("raise? (or cancel, detach)")
        shown.type("raise\n")
        shown.wait_for("the new budget (for example assignments=2)")
        shown.type("lots\n")
        shown.wait_for("each with a number; not 'lots'")
        shown.type("raise\n")
        shown.type("assignments=50\n")
        code = shown.wait()
    assert code == 0, shown.text


@pytest.mark.parametrize(
    ("keys", "ending", "words"),
    [("cancel\n", 1, "CANCELLED"), ("\x04", 4, "answer run_"), ("\x03\x03", 130, "Go on: ")],
    ids=["cancel", "ctrl-d", "ctrl-c twice"],
)
async def test_a_question_can_be_left(keys: str, ending: int, words: str, tmp_path: Path) -> None:
    folder = await example_repository(tmp_path)
    arguments = greeting_on(folder, tmp_path / "gate")
    with terminal(*arguments, "--budget", "assignments=1", data=tmp_path / "data") as shown:
        shown.wait_for("raise? (or cancel, detach)")
        for key in keys if keys.startswith("\x03") else (keys,):
            shown.type(key)
            if key == "\x03":
                shown.wait_for("[d]etach")
        code = shown.wait()
    assert code == ending, shown.text
    assert words in shown.text
