"""`make acp-conformance`: every agent by ACP through the same steps, with our client and a scripted model; prints a table.

prompt: it answers and ends its turn. tool: it runs a command that the model calls. usage: it says what it used.
permission: it asks before the command, and leaves it when that is denied. cancel: SIGTERM ends the turn as cancelled.
resume: a session that ended goes on. crash: it is killed in the middle of a turn, which is told, and works again.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pointsman.acp.order import Order
from pointsman.profiles import profiles
from tests.acceptance.agents import PROGRAMS, ROOT, Unavailable, installed
from tests.acceptance.agents_model import Model, Say, asked_in, model

STEPS = ("prompt", "tool", "usage", "permission", "cancel", "resume", "crash")
AGENTS = tuple(name for name in PROGRAMS if name.endswith("-acp"))
STEP_SECONDS = 120.0
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")
CODE = "import sys; from pointsman.acp.bridge import main; main(sys.argv[1:])"
HELLO, MAKE, WAIT = "JOB-HELLO", "JOB-MAKE", "JOB-WAIT"
MADE = "made.txt"
SHELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": ("Bash", {"description": "make a file"}),
    "codex": ("exec_command", {}),
    "gemini": ("run_shell_command", {"description": "make a file"}),
    "opencode": ("bash", {"description": "make a file"}),
    "qwen": ("run_shell_command", {"description": "make a file", "is_background": False}),
    "cline": ("run_commands", {}),
}
ARGUMENTS = {"codex": "cmd", "cline": "commands"}


class Script:
    """What the model says: by the last job that a prompt named."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.waiting = threading.Event()

    def __call__(self, agent: str, body: Any) -> Say:
        """An answer, the call of a shell, or nothing until it is released."""
        words, asked = json.dumps(body), asked_in(body)
        job = max((HELLO, MAKE, WAIT), key=words.rfind)
        if not asked.tools or words.rfind(job) < 0:
            return Say("A title")
        if job == WAIT:
            self.waiting.set()
            self.released.wait(STEP_SECONDS)
        if job == MAKE and not asked.answers:
            tool, more = SHELLS[agent]
            line = f"printf done > {MADE}"
            given: Any = [line] if agent == "cline" else line
            return Say(tool=tool, arguments={**more, ARGUMENTS.get(agent, "command"): given})
        return Say("Hello, it is done.")


@dataclass
class Turn:
    """One turn of an agent under our client: what it printed, and how it ended."""

    process: "subprocess.Popen[str]"
    events: list[dict[str, Any]] = field(default_factory=list)

    def read(self, *wanted: str) -> dict[str, Any] | None:
        """Events up to the first of a wanted type; None at the end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["type"] in wanted:
                return self.events[-1]
        return None

    def end(self) -> int:
        """The exit code, once everything is read."""
        self.read()
        return self.process.wait()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type."""
        return [event for event in self.events if event["type"] == kind]


class Place:
    """An agent with a tree, a home and a folder for answers of its own."""

    def __init__(self, name: str, commands: Path, folder: Path, server: Model) -> None:
        self.tree, home, self.answers = folder / "tree", folder / "home", folder / "answers"
        for one in (self.tree, home, self.answers):
            one.mkdir(parents=True)
        profile, program = profiles()[name], PROGRAMS[name]
        filled = {"{handoff}": str(self.tree), "{sandbox}": profile.sandbox[-1]}
        self._command = list(profile.command)
        for mark, value in filled.items():
            self._command = [part.replace(mark, value) for part in self._command]
        self._variables = {
            "PATH": os.pathsep.join((str(commands), os.environ["PATH"])), "HOME": str(home), "TERM": "dumb",
            "PYTHONPATH": str(ROOT), **program.variables(f"{server.url}/{program.speaks_as}", home),
        }  # fmt: skip

    @contextmanager
    def turn(self, job: str, session: str = "", ask_before: tuple[str, ...] = ()) -> Iterator[Turn]:
        """A turn that is ended, with all its children, at the end of the block or of its time."""
        order = Order((str(self.tree),), session=session, answers=str(self.answers), ask_before=ask_before)
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, order.line(), *self._command], env=self._variables, cwd=self.tree, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(f"{job}: do what the model says.\n")
        process.stdin.close()
        over = threading.Timer(STEP_SECONDS, _end_group, (process.pid,))
        over.start()
        try:
            yield Turn(process)
        finally:
            over.cancel()
            _end_group(process.pid)
            process.wait()


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for child in map(int, children) for found in (child, *_descendants(child))]


def prompt_tool_usage(place: Place) -> dict[str, str]:
    """Two turns that end by themselves; the session of the first."""
    with place.turn(HELLO) as turn:
        said = turn.end() == 0 and bool(turn.of("message")) and bool(turn.of("stop"))
        session = next((event["id"] for event in turn.of("session")), "")
        used = max((event["total"] or 0 for event in turn.of("usage")), default=0)
    with place.turn(MAKE) as turn:
        ended = turn.end() == 0
    made = (place.tree / MADE).exists()
    tool = "yes" if ended and made and turn.of("tool") else f"made: {made}, told: {bool(turn.of('tool'))}"
    (place.tree / MADE).unlink(missing_ok=True)
    rows = {"prompt": "yes" if said else "no", "tool": tool, "usage": "yes" if used else "says nothing"}
    return {**rows, "session": session}


def permission(place: Place) -> str:
    """Whether it asks, and does not do what was denied."""
    with place.turn(MAKE, ask_before=KINDS) as turn:
        while (asked := turn.read("permission_request")) is not None:
            (place.answers / asked["key"]).write_text("deny")
    made = (place.tree / MADE).exists()
    (place.tree / MADE).unlink(missing_ok=True)
    if not turn.of("permission_request"):
        return "never asks"
    return "did it though denied" if made else "yes"


def cancel(place: Place, script: Script) -> str:
    """Whether a turn that is cancelled says so."""
    script.waiting.clear()
    script.released.clear()
    with place.turn(WAIT) as turn:
        turn.read("session")
        if not script.waiting.wait(STEP_SECONDS):
            return "the model was not asked"
        turn.process.send_signal(signal.SIGTERM)
        turn.end()
    script.released.set()
    last = str(turn.events[-1].get("message", ""))
    return "yes" if "cancelled" in last else last[:60] or "no answer"


def resume(place: Place, session: str) -> str:
    """Whether a session that ended goes on."""
    with place.turn(HELLO, session=session) as turn:
        ended = turn.end() == 0
    told = turn.of("session")[0] if turn.of("session") else {"again": False, "resumed": False}
    if not told["again"]:
        return "does not offer it"
    return "yes" if told["resumed"] and ended else "begins anew"


def crash(place: Place, script: Script) -> str:
    """Whether the death of the agent ends the turn as one, and the next turn works."""
    script.waiting.clear()
    script.released.clear()
    with place.turn(WAIT) as turn:
        turn.read("session")
        if not script.waiting.wait(STEP_SECONDS):
            return "the model was not asked"
        for pid in _descendants(turn.process.pid):
            os.kill(pid, signal.SIGKILL)
        code = turn.end()
    script.released.set()
    last = str(turn.events[-1].get("message", ""))
    with place.turn(HELLO) as again:
        works = again.end() == 0
    return "yes" if code == 1 and "before its turn did" in last and works else f"{last[:60]}; again: {works}"


def conform(name: str, commands: Path) -> dict[str, str]:
    """The row of one agent."""
    script = Script()
    with tempfile.TemporaryDirectory() as folder, model(script) as server:
        place = Place(name, commands, Path(folder).resolve(), server)
        row = prompt_tool_usage(place)
        session = row.pop("session")
        row["permission"] = permission(place)
        row["cancel"] = cancel(place, script)
        row["resume"] = resume(place, session)
        row["crash"] = crash(place, script)
        script.released.set()
    return row


def main(environment: str, *names: str) -> None:
    """Print a table; end with 1 where an agent that can be had does not even answer, call a tool, or survive a crash."""
    print(f"| agent | {' | '.join(STEPS)} |\n|---|{'---|' * len(STEPS)}", flush=True)
    failed = []
    for name in names or AGENTS:
        try:
            row = conform(name, installed(name, Path(environment).resolve()))
        except Unavailable as reason:
            print(f"| {name} | SKIPPED: {str(reason)[:200]} |", flush=True)
            continue
        print(f"| {name} | {' | '.join(row[step] for step in STEPS)} |", flush=True)
        failed += [name] if {row[step] for step in ("prompt", "tool", "cancel", "crash")} != {"yes"} else []
    if failed:
        sys.exit(f"not as it should be: {', '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
