"""The baseline: what the proof commands say about the base, before any agent is asked.

BROKEN means that no agent's work could be judged: a command cannot run, or no test ran. RED and GREEN are known test by
test, so that a delivery is compared with what was there before it.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from pointsman.proof.execution import CommandRunner, Purpose
from pointsman.proof.results import Outcome, TestReport
from pointsman.proof.snapshot import Snapshot
from pointsman.sandbox import CommandResult, EndedBy

CANNOT_START = (126, 127)
EXCERPT_LENGTH = 3000
SHOWN_RED = 5
_MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError: |ImportError: )?No module named '?([A-Za-z0-9_.]+)'?")
_MISSING_PACKAGE = re.compile(r"Cannot find (?:module|package) '([^'./][^']*)'")
_CANNOT_RUN = (
    (re.compile(r"No rule to make target"), "make has no such target"),
    (re.compile(r"Missing script:|Command \"[^\"]+\" not found"), "package.json has no such script"),
    (
        re.compile(r"(?:command|executable) not found|: not found$", re.MULTILINE),
        "a program that it starts is not there",
    ),
    (re.compile(r"no test specified"), "package.json has no test script of its own"),
    (
        re.compile(
            r"^EOFError: EOF when reading|(?:stdin|input device) is not a (?:tty|terminal)",
            re.MULTILINE | re.IGNORECASE,
        ),
        "it asks for input, and nobody can answer it",
    ),
)
"""What runners print when nothing was tested, and what that means."""
SETUP_ADVICE = (
    "install what is missing by [workspace] setup in pointsman.toml; `pointsman init` proposes it and tries it out"
)

CRASH_ADVICE = (
    "the output above says what ended it: a crash in the tests hides those after it, so leave that file out of [proof] verify; "
    f"or {SETUP_ADVICE}"
)


class State(StrEnum):
    """What the base is like."""

    GREEN = "GREEN"
    RED = "RED"
    BROKEN = "BROKEN"


@dataclass(frozen=True, slots=True)
class CommandBaseline:
    """One proof command on the base."""

    command: tuple[str, ...]
    state: State
    tests: int = 0
    red: tuple[str, ...] = ()
    exit_code_only: bool = False
    reason: str = ""
    """Why it is broken, and what to do."""
    output: str = ""
    denied: str = ""
    """What it tried to reach without a network."""

    def describe(self) -> str:
        """One line: how many tests, which are red, and what they could not reach."""
        denied = f" ({self.denied})" if self.denied and self.state is not State.GREEN else ""
        return f"{self._result()}{denied}"

    def _result(self) -> str:
        shown = " ".join(self.command)
        if self.state is State.BROKEN:
            return f"`{shown}`: BROKEN: {self.reason}"
        if self.exit_code_only:
            return f"`{shown}`: {self.state} by its exit code alone; no test of its own is known"
        counted = f"{self.tests} test{'s' * (self.tests != 1)}: {self.tests - len(self.red)} green, {len(self.red)} red"
        more = f" and {len(self.red) - SHOWN_RED} more" if len(self.red) > SHOWN_RED else ""
        return f"`{shown}`: {counted}" + (f": {', '.join(self.red[:SHOWN_RED])}{more}" if self.red else "")


@dataclass(frozen=True, slots=True)
class Baseline:
    """All proof commands on the base."""

    commands: tuple[CommandBaseline, ...]

    @property
    def state(self) -> State:
        """The worst of its commands."""
        states = {command.state for command in self.commands}
        return next((state for state in (State.BROKEN, State.RED) if state in states), State.GREEN)

    @property
    def broken(self) -> tuple[CommandBaseline, ...]:
        """The commands that cannot judge anything."""
        return tuple(command for command in self.commands if command.state is State.BROKEN)


def judge(command: Sequence[str], result: CommandResult, report: TestReport, names: Collection[str]) -> CommandBaseline:
    """What one command says about a base with files of these names."""
    reason = _broken_reason(command, result, report, names)
    if reason:
        output = result.excerpt(EXCERPT_LENGTH)
        return CommandBaseline(tuple(command), State.BROKEN, reason=reason, output=output, denied=result.denied)
    red = tuple(sorted(test.id for test in report.red))
    state = State.GREEN if result.ok and not red else State.RED
    tests = 0 if report.exit_code_only else len(report.executed)
    return CommandBaseline(
        tuple(command), state, tests, red if tests else (), report.exit_code_only, denied=result.denied
    )


def _broken_reason(command: Sequence[str], result: CommandResult, report: TestReport, names: Collection[str]) -> str:
    """Why a command cannot judge anything; empty when it can."""
    text = result.output.decode(errors="replace")
    if result.ended_by is not EndedBy.ITSELF:
        return f"{result.reason}; [proof] timeout gives a command more time, [proof] verify names another"
    if text.startswith("cannot start") or result.exit_code in CANNOT_START:
        return f"`{command[0]}` cannot be started; {SETUP_ADVICE}"
    ran = [test for test in report.executed if test.outcome is not Outcome.ERROR]
    if not result.ok and (report.exit_code_only or not ran) and (missing := _missing_dependency(text, names)):
        return f"`{missing}` is not installed; {SETUP_ADVICE}"
    return _without_tests(result, report, text)


def _without_tests(result: CommandResult, report: TestReport, text: str) -> str:
    """Why no test ran in a command that came to its end; empty when one did, or nobody can know."""
    if report.exit_code_only:
        meaning = "" if result.ok else next((meaning for sign, meaning in _CANNOT_RUN if sign.search(text)), "")
        return f"{meaning}; name another command in [proof] verify, or with --verify" if meaning else ""
    if not report.complete:
        return f"{report.problem}; {CRASH_ADVICE}"
    return "" if report.executed else "no test ran; name the tests in [proof] verify, or with --verify"


def _missing_dependency(text: str, names: Collection[str]) -> str:
    """The first module that cannot be imported and that no file of the base has the name of."""
    own = {part for name in names for part in PurePosixPath(name).with_suffix("").parts}
    found = [*_MISSING_MODULE.findall(text), *_MISSING_PACKAGE.findall(text)]
    return next((name for name in found if name.split(".")[0].split("/")[0] not in own), "")


async def try_base(runner: CommandRunner, base: Snapshot, commands: Sequence[Sequence[str]]) -> Baseline:
    """Runs every proof command on the base."""
    found = []
    for command in commands:
        run = await runner.run(Purpose.BASE, base, command)
        found.append(judge(command, run.result, run.report, base.entries))
    return Baseline(tuple(found))


def to_json(baseline: Baseline) -> str:
    """A baseline as text, to be stored."""
    return json.dumps([asdict(command) for command in baseline.commands])


def from_json(text: str) -> Baseline:
    """A stored baseline; ValueError, KeyError or TypeError for another text."""
    return Baseline(
        tuple(
            CommandBaseline(
                **{
                    **fields,
                    "command": tuple(fields["command"]),
                    "red": tuple(fields["red"]),
                    "state": State(fields["state"]),
                }
            )
            for fields in json.loads(text)
        )
    )
