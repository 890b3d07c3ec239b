"""Every command: its summary, and the function that imports its module."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pointsman.cli.commands import loaders

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


COMMANDS: Mapping[str, Command] = {
    "init": Command(
        loaders.init,
        Group.START,
        "propose pointsman.toml for a repository and try it in a clean tree",
        ("init", "init --yes"),
    ),
    "run": Command(
        loaders.run,
        Group.START,
        "submit a task, follow it live, print what was delivered",
        (
            'run "fix the parser for empty fields" --agent claude',
            'run "…" --command "my-agent {prompt_file}" --verify "make test"',
        ),
    ),
    "plan": Command(
        loaders.plan,
        Group.START,
        "have a plan made and stop: look at it, edit it, approve it",
        ('plan "…" --agent claude', "plan show last", "plan apply last plan.json --approve"),
    ),
    "demo": Command(
        loaders.demo,
        Group.START,
        "watch a crew of scripts on an example repository: a lie, a collision and a review are caught",
        ("demo", "demo --verbose"),
    ),
    "answer": Command(
        loaders.answer, Group.WORK, "answer the question that a run waits with", ("answer last", "answer last accept")
    ),
    "deliver": Command(
        loaders.deliver,
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
        loaders.queue,
        Group.WORK,
        "merge queues: what lands, what waits, and the integrator",
        ("queue list --live", "queue work --push origin", "queue answer 3f2a retry"),
    ),
    "change": Command(
        loaders.change, Group.WORK, "change what a run is to do", ('change last "keep the old flag as an alias"',)
    ),
    "rerun": Command(
        loaders.rerun,
        Group.WORK,
        "do an ended run again, from its plan, a wave or a task on",
        ("rerun last --agent claude", 'rerun last --from task:T2 --agent codex --text "keep the old flag"'),
    ),
    "schedule": Command(
        loaders.schedule,
        Group.START,
        "start a run at every time of a calendar, such as every night",
        (
            'schedule "update the dependencies and repair what breaks" --cron "0 3 * * *" --tz Europe/Berlin',
            "schedule list",
            'schedule pause last --reason "release week"',
        ),
    ),
    "cancel": Command(loaders.cancel, Group.WORK, "end a run on purpose", ('cancel last --reason "done by hand"',)),
    "runs": Command(
        loaders.runs, Group.LOOK, "list runs and who has to act", ("runs", "runs --state complete --limit 5")
    ),
    "projects": Command(
        loaders.projects,
        Group.LOOK,
        "list projects and how many of their runs need you",
        ("projects", "projects --json"),
    ),
    "show": Command(loaders.show, Group.LOOK, "show a run, its attempts and what it delivered", ("show last",)),
    "watch": Command(loaders.watch, Group.LOOK, "follow a run", ("watch last", "watch last --repo . --agent claude")),
    "logs": Command(
        loaders.logs,
        Group.LOOK,
        "print what a run's agents print, live with -f",
        ("logs last", "logs last --task T1 -f"),
    ),
    "trace": Command(
        loaders.trace,
        Group.LOOK,
        "draw where a run's time went, or print its spans",
        ("trace last", "trace last --json"),
    ),
    "agents": Command(
        loaders.agents,
        Group.LOOK,
        "list agents: who works, who is lost, what each has spent",
        ("agents", "agents --json"),
    ),
    "console": Command(loaders.console, Group.LOOK, "open the web console", ("console", "console --no-browser")),
    "up": Command(
        loaders.up,
        Group.OPERATE,
        "start everything in one process, with the crew of the repository here",
        ("up", "up --no-crew --port 0"),
    ),
    "token": Command(
        loaders.token,
        Group.OPERATE,
        "print a token for clients in other languages, and for HTTP",
        ("token --env", "token --env coder --agent box-1 --expires 7d"),
    ),
    "down": Command(loaders.down, Group.OPERATE, "stop what `pointsman up` started on the data directory", ("down",)),
    "agent": Command(
        loaders.agent,
        Group.OPERATE,
        "start a worker: verifier, surveyor, or any command-line agent",
        ("agent --role verifier --role surveyor --repo .", "agent --role coder --agent claude --repo ."),
    ),
    "mcp": Command(
        loaders.mcp,
        Group.OPERATE,
        "serve runs to an MCP client on standard input and output",
        ("mcp", "mcp --repo ~/work/shop"),
    ),
    "notify": Command(
        loaders.notify,
        Group.OPERATE,
        "tell a person about every question of a run",
        (
            "notify --command 'notify-send Pointsman'",
            "notify --webhook https://example.org/hook --secret-file hook.secret",
        ),
    ),
    "serve": Command(loaders.serve, Group.OPERATE, "start one service", ("serve orchestrator",)),
    "migrate": Command(loaders.migrate, Group.OPERATE, "bring the stores' tables up to date", ("migrate",)),
    "context": Command(
        loaders.context,
        Group.OPERATE,
        "name control planes (server, project, credential) and choose one",
        ("context add work --server plane.example:8443 --project team-a", "context use work", "context list"),
    ),
    "config": Command(
        loaders.config, Group.OPERATE, "print every setting of a run here, and where it comes from", ("config",)
    ),
    "doctor": Command(loaders.doctor, Group.OPERATE, "check the set-up and say what to fix", ("doctor",)),
    "audit": Command(
        loaders.audit, Group.OPERATE, "check a run's journal, or every store", ("audit last", "audit --all")
    ),
    "clean": Command(
        loaders.clean,
        Group.OPERATE,
        "remove what killed workers and ended runs left behind",
        ("clean --dry-run", "clean", "clean --ended", "clean --ended --state failed --older 2w --yes"),
    ),
    "completion": Command(
        loaders.completion,
        Group.OPERATE,
        "print the completion of a shell: bash, zsh or fish",
        ("completion bash > ~/.local/share/bash-completion/completions/pointsman", "completion fish | source"),
    ),
    "route": Command(
        loaders.route,
        Group.PARTS,
        "decide who should take a message; rules, log, policy, outcomes and debates",
        ('route "why is the build red?"', "route log"),
    ),
    "thinking": Command(
        loaders.thinking,
        Group.PARTS,
        "say which step of the thinking workflow comes next",
        ("thinking", "thinking full"),
    ),
    "pipeline": Command(
        loaders.pipeline,
        Group.PARTS,
        "drive a task through its stages, or read what an agent said",
        ("pipeline templates", 'pipeline start "fix the parser"'),
    ),
    "workflow": Command(
        loaders.workflow,
        Group.PARTS,
        "plans and their tasks: what is next, what is in the way, verify",
        ("workflow import tasks.md", "workflow next ID"),
    ),
    "machine": Command(
        loaders.machine,
        Group.PARTS,
        "print the states of a run and the transitions between them",
        ("machine --mermaid",),
    ),
    "evidence": Command(
        loaders.evidence, Group.PARTS, "run a command and record what it proves", ("evidence run -- pytest -q",)
    ),
    "proof": Command(
        loaders.proof,
        Group.PARTS,
        "prove a change with tests that its author could not touch; needs no server",
        ("proof run", "proof run --base main --verify-from ../held-out", "proof explain"),
    ),
}
