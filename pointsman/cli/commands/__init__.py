"""Every command: its summary, and a function that imports its module.

The functions keep `pointsman --help` and each command from importing what only other commands need.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer


class Group(StrEnum):
    """The groups of the help, in their order."""

    START = "Start"
    WORK = "Work"
    LOOK = "Look"
    OPERATE = "Operate"
    PARTS = "Parts"


@dataclass(frozen=True, slots=True)
class Command:
    """One command: how to import its Typer app, its group and line in the help, and examples of its use."""

    load: "Callable[[], Typer]"
    group: Group
    summary: str
    examples: tuple[str, ...]


def _up() -> "Typer":
    from pointsman.cli.commands.up import app

    return app


def _demo() -> "Typer":
    from pointsman.cli.commands.demo import app

    return app


def _plan() -> "Typer":
    from pointsman.cli.commands.plan import app

    return app


def _init() -> "Typer":
    from pointsman.cli.commands.init import app

    return app


def _config() -> "Typer":
    from pointsman.cli.commands.config import app

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


def _logs() -> "Typer":
    from pointsman.cli.commands.logs import app

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


def _mcp() -> "Typer":
    from pointsman.cli.commands.mcp import app

    return app


def _queue() -> "Typer":
    from pointsman.cli.commands.queue import app

    return app


def _notify() -> "Typer":
    from pointsman.cli.commands.notify import app

    return app


def _evidence() -> "Typer":
    from pointsman.cli.commands.evidence import app

    return app


def _proof() -> "Typer":
    from pointsman.cli.commands.proof import app

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


def _down() -> "Typer":
    from pointsman.cli.commands.down import app

    return app


def _completion() -> "Typer":
    from pointsman.cli.commands.completion import app

    return app


def _doctor() -> "Typer":
    from pointsman.cli.commands.doctor import app

    return app


def _console() -> "Typer":
    from pointsman.cli.commands.console import app

    return app


def _token() -> "Typer":
    from pointsman.cli.commands.token import app

    return app


COMMANDS: Mapping[str, Command] = {
    "init": Command(
        _init,
        Group.START,
        "propose pointsman.toml for a repository and try it in a clean tree",
        ("init", "init --yes"),
    ),
    "run": Command(
        _run,
        Group.START,
        "submit a task, follow it live, print what was delivered",
        (
            'run "fix the parser for empty fields" --agent claude',
            'run "…" --command "my-agent {prompt_file}" --verify "make test"',
        ),
    ),
    "plan": Command(
        _plan,
        Group.START,
        "have a plan made and stop: look at it, edit it, approve it",
        ('plan "…" --agent claude', "plan show last", "plan apply last plan.json --approve"),
    ),
    "demo": Command(
        _demo,
        Group.START,
        "watch a crew of scripts on an example repository: a lie, a collision and a review are caught",
        ("demo", "demo --verbose"),
    ),
    "answer": Command(
        _answer, Group.WORK, "answer the question that a run waits with", ("answer last", "answer last accept")
    ),
    "deliver": Command(
        _deliver,
        Group.WORK,
        "put a run's accepted work on a branch, and land it",
        (
            "deliver last",
            "deliver last --branch fix-parser",
            "deliver last --onto main",
            "deliver last --push origin --pr",
        ),
    ),
    "queue": Command(
        _queue,
        Group.WORK,
        "merge queues: what lands, what waits, and the integrator",
        ("queue list --live", "queue work --push origin", "queue answer 3f2a retry"),
    ),
    "change": Command(
        _change, Group.WORK, "change what a run is to do", ('change last "keep the old flag as an alias"',)
    ),
    "cancel": Command(_cancel, Group.WORK, "end a run on purpose", ('cancel last --reason "done by hand"',)),
    "runs": Command(_runs, Group.LOOK, "list runs and who has to act", ("runs", "runs --state complete --limit 5")),
    "show": Command(_show, Group.LOOK, "show a run, its attempts and what it delivered", ("show last",)),
    "watch": Command(_watch, Group.LOOK, "follow a run", ("watch last", "watch last --repo . --agent claude")),
    "logs": Command(
        _logs, Group.LOOK, "print what a run's agents print, live with -f", ("logs last", "logs last --task T1 -f")
    ),
    "trace": Command(
        _trace, Group.LOOK, "draw where a run's time went, or print its spans", ("trace last", "trace last --json")
    ),
    "agents": Command(
        _agents, Group.LOOK, "list agents: who works, who is lost, what each has spent", ("agents", "agents --json")
    ),
    "console": Command(_console, Group.LOOK, "open the web console", ("console", "console --no-browser")),
    "up": Command(
        _up,
        Group.OPERATE,
        "start everything in one process, with the crew of the repository here",
        ("up", "up --no-crew --port 0"),
    ),
    "token": Command(
        _token,
        Group.OPERATE,
        "print a token for clients in other languages, and for HTTP",
        ("token --env", "token --env coder --agent box-1 --expires 7d"),
    ),
    "down": Command(_down, Group.OPERATE, "stop what `pointsman up` started on the data directory", ("down",)),
    "agent": Command(
        _agent,
        Group.OPERATE,
        "start a worker: verifier, surveyor, or any command-line agent",
        ("agent --role verifier --role surveyor --repo .", "agent --role coder --agent claude --repo ."),
    ),
    "mcp": Command(
        _mcp,
        Group.OPERATE,
        "serve runs to an MCP client on standard input and output",
        ("mcp", "mcp --repo ~/work/shop"),
    ),
    "notify": Command(
        _notify,
        Group.OPERATE,
        "tell a person about every question of a run",
        (
            "notify --command 'notify-send Pointsman'",
            "notify --webhook https://example.org/hook --secret-file hook.secret",
        ),
    ),
    "serve": Command(_serve, Group.OPERATE, "start one service", ("serve orchestrator",)),
    "migrate": Command(_migrate, Group.OPERATE, "bring the stores' tables up to date", ("migrate",)),
    "config": Command(
        _config, Group.OPERATE, "print every setting of a run here, and where it comes from", ("config",)
    ),
    "doctor": Command(_doctor, Group.OPERATE, "check the set-up and say what to fix", ("doctor",)),
    "audit": Command(_audit, Group.OPERATE, "check a run's journal, or every store", ("audit last", "audit --all")),
    "clean": Command(_clean, Group.OPERATE, "remove what killed workers left behind", ("clean --dry-run", "clean")),
    "completion": Command(
        _completion,
        Group.OPERATE,
        "print the completion of a shell: bash, zsh or fish",
        ("completion bash > ~/.local/share/bash-completion/completions/pointsman", "completion fish | source"),
    ),
    "route": Command(
        _route,
        Group.PARTS,
        "decide who should take a message; rules, log, policy, outcomes and debates",
        ('route "why is the build red?"', "route log"),
    ),
    "thinking": Command(
        _thinking, Group.PARTS, "say which step of the thinking workflow comes next", ("thinking", "thinking full")
    ),
    "pipeline": Command(
        _pipeline,
        Group.PARTS,
        "drive a task through its stages, or read what an agent said",
        ("pipeline templates", 'pipeline start "fix the parser"'),
    ),
    "workflow": Command(
        _workflow,
        Group.PARTS,
        "plans and their tasks: what is next, what is in the way, verify",
        ("workflow import tasks.md", "workflow next ID"),
    ),
    "machine": Command(
        _machine, Group.PARTS, "print the states of a run and the transitions between them", ("machine --mermaid",)
    ),
    "evidence": Command(
        _evidence, Group.PARTS, "run a command and record what it proves", ("evidence run -- pytest -q",)
    ),
    "proof": Command(
        _proof,
        Group.PARTS,
        "prove a change with tests that its author could not touch; needs no server",
        ("proof run", "proof run --base main --verify-from ../held-out", "proof explain"),
    ),
}
