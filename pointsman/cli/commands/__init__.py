"""Every command: its summary, and a function that imports its module.

The functions keep `pointsman --help` and each command from importing what only other commands need.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer


@dataclass(frozen=True, slots=True)
class Command:
    """One command: how to import its Typer app, and its line in the help."""

    load: "Callable[[], Typer]"
    summary: str


def _up() -> "Typer":
    from pointsman.cli.commands.up import app

    return app


def _demo() -> "Typer":
    from pointsman.cli.commands.demo import app

    return app


def _run() -> "Typer":
    from pointsman.cli.commands.run import app

    return app


def _agent() -> "Typer":
    from pointsman.cli.commands.agent import app

    return app


def _agents() -> "Typer":
    from pointsman.cli.commands.agents import app

    return app


def _runs() -> "Typer":
    from pointsman.cli.commands.runs import app

    return app


def _show() -> "Typer":
    from pointsman.cli.commands.show import app

    return app


def _watch() -> "Typer":
    from pointsman.cli.commands.watch import app

    return app


def _answer() -> "Typer":
    from pointsman.cli.commands.answer import app

    return app


def _change() -> "Typer":
    from pointsman.cli.commands.change import app

    return app


def _cancel() -> "Typer":
    from pointsman.cli.commands.cancel import app

    return app


def _trace() -> "Typer":
    from pointsman.cli.commands.trace import app

    return app


def _audit() -> "Typer":
    from pointsman.cli.commands.audit import app

    return app


def _deliver() -> "Typer":
    from pointsman.cli.commands.deliver import app

    return app


def _evidence() -> "Typer":
    from pointsman.cli.commands.evidence import app

    return app


def _serve() -> "Typer":
    from pointsman.cli.commands.serve import app

    return app


def _route() -> "Typer":
    from pointsman.cli.commands.route import app

    return app


def _thinking() -> "Typer":
    from pointsman.cli.commands.thinking import app

    return app


def _machine() -> "Typer":
    from pointsman.cli.commands.machine import app

    return app


def _migrate() -> "Typer":
    from pointsman.cli.commands.migrate import app

    return app


def _pipeline() -> "Typer":
    from pointsman.cli.commands.pipeline import app

    return app


def _workflow() -> "Typer":
    from pointsman.cli.commands.workflow import app

    return app


def _clean() -> "Typer":
    from pointsman.cli.commands.clean import app

    return app


def _doctor() -> "Typer":
    from pointsman.cli.commands.doctor import app

    return app


COMMANDS: Mapping[str, Command] = {
    "up": Command(_up, "start everything in one process, on SQLite"),
    "demo": Command(_demo, "watch an agent's lie being caught, on a small example repository"),
    "run": Command(_run, "submit a task, follow it live, print what was delivered"),
    "agent": Command(_agent, "start a worker: verifier, surveyor, or any command-line agent"),
    "agents": Command(_agents, "list agents: who works, who is lost, what each has spent"),
    "runs": Command(_runs, "list runs"),
    "show": Command(_show, "show a run and what it delivered"),
    "watch": Command(_watch, "follow a run"),
    "answer": Command(_answer, "answer the question that a run waits with"),
    "change": Command(_change, "change what a run is to do"),
    "cancel": Command(_cancel, "end a run on purpose"),
    "trace": Command(_trace, "draw where a run's time went, or print its spans"),
    "audit": Command(_audit, "check a run's journal"),
    "deliver": Command(_deliver, "put a run's accepted work on a branch"),
    "evidence": Command(_evidence, "run a command and keep what it proves"),
    "serve": Command(_serve, "start one service"),
    "route": Command(_route, "decide who should take a message; rules, log, policy, outcomes and debates"),
    "thinking": Command(_thinking, "say which step of the thinking workflow comes next"),
    "machine": Command(_machine, "print the states of a run and the transitions between them"),
    "migrate": Command(_migrate, "bring the stores' tables up to date"),
    "pipeline": Command(_pipeline, "drive a task through its stages, or read what an agent said"),
    "workflow": Command(_workflow, "plans and their tasks: what is next, what is in the way, verify"),
    "clean": Command(_clean, "remove what killed workers left behind"),
    "doctor": Command(_doctor, "check the set-up and say what to fix"),
}
