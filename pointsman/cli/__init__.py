"""The `pointsman` command: one table of commands, each in its own module and imported only when it is used."""

import importlib
import os
import sys
from dataclasses import dataclass

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_WAITS_FOR_PERSON = 4
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Listed:
    """One command: where it is and what it is for."""

    module: str
    summary: str


COMMANDS = {
    "up": Listed("up", "start everything in one process, on SQLite"),
    "demo": Listed("demo", "watch an agent's lie being caught, on a small example repository"),
    "run": Listed("run", "submit a task, follow it live, print what was delivered"),
    "agent": Listed("agent", "start a worker: verifier, surveyor, or any command-line agent"),
    "agents": Listed("agents", "list agents: who works, who is lost, what each has spent"),
    "runs": Listed("runs", "list runs"),
    "show": Listed("show", "show a run and what it delivered"),
    "watch": Listed("watch", "follow a run"),
    "answer": Listed("answer", "answer the question that a run waits with"),
    "change": Listed("change", "change what a run is to do"),
    "cancel": Listed("cancel", "end a run on purpose"),
    "trace": Listed("trace", "draw where a run's time went, or print its spans"),
    "audit": Listed("audit", "check a run's journal"),
    "deliver": Listed("deliver", "put a run's accepted work on a branch"),
    "evidence": Listed("evidence", "run a command and keep what it proves"),
    "serve": Listed("serve", "start one service"),
    "route": Listed("route", "decide who should take a message; rules, log, policy, outcomes and debates"),
    "thinking": Listed("thinking", "say which step of the thinking workflow comes next"),
    "machine": Listed("machine", "print the states of a run and the transitions between them"),
    "migrate": Listed("migrate", "bring the stores' tables up to date"),
    "pipeline": Listed("pipeline", "drive a task through its stages, or read what an agent said"),
    "workflow": Listed("workflow", "plans and their tasks: what is next, what is in the way, verify"),
    "clean": Listed("clean", "remove what killed workers left behind"),
    "doctor": Listed("doctor", "check the set-up and say what to fix"),
}


def main() -> None:
    """Run the command that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("--help", "-h", "help"):
        print(_help())
    elif name == "--version":
        from importlib.metadata import version

        print(version("pointsman"))
    elif name in COMMANDS:
        _run(name)
    else:
        print(f"pointsman: unknown command '{name}'\n\n{_help()}", file=sys.stderr)
        sys.exit(EXIT_USAGE)


def _run(name: str) -> None:
    from pointsman.client.errors import CallFailed, Unavailable
    from pointsman.services.chassis.core.errors import Code, Refusal

    module = importlib.import_module(f"pointsman.cli.commands.{COMMANDS[name].module}")
    module.app.pretty_exceptions_enable = False
    try:
        module.app(sys.argv[2:], prog_name=f"pointsman {name}")
    except Refusal as refusal:
        print(f"pointsman: {refusal.message}", file=sys.stderr)
        sys.exit(EXIT_USAGE if refusal.code is Code.INVALID_ARGUMENT else EXIT_FAILED)
    except CallFailed as failure:
        print(f"pointsman: {failure}", file=sys.stderr)
        sys.exit(EXIT_UNREACHABLE if isinstance(failure, Unavailable) else EXIT_FAILED)
    except OSError as error:
        if error.filename is None:
            raise
        print(f"pointsman: {error.filename}: {str(error.strerror).lower()}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


def _help() -> str:
    lines = ["usage: pointsman COMMAND [OPTIONS]", ""]
    lines += [f"  {name:<10} {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "`pointsman COMMAND --help` says more. Every command takes --json."]
    return "\n".join(lines)
