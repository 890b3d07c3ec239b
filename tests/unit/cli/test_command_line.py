"""The command line as a person meets it: groups, help, examples that parse, nearest commands, completion."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from pointsman.api.orchestrator.v1 import run_pb2 as pb
from pointsman.cli.__main__ import main
from pointsman.cli.commands import COMMANDS, Group
from pointsman.cli.commands.completion import SCRIPTS, completed_words
from pointsman.cli.exit_codes import EXIT_MEANINGS
from pointsman.cli.render.run_table import attention_text, run_table

ROOT = Path(__file__).parents[3]


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Runs the command line in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["pointsman", *arguments])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_the_help_names_every_command_once_in_its_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--help") == 0
    said = capsys.readouterr().out
    starts = [said.index(f"\n{group}\n") for group in Group]
    assert starts == sorted(starts)
    for name, command in COMMANDS.items():
        assert said.count(f"\n  {name:<10} {command.summary}\n") == 1
    for code, meaning in EXIT_MEANINGS.items():
        assert f"{code} {meaning}" in said


@pytest.mark.parametrize("arguments", [("help", "show"), ("show", "--help"), ("show", "-h")])
def test_the_help_of_a_command_ends_with_its_examples(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert called(monkeypatch, *arguments) == 0
    said = capsys.readouterr().out
    assert "The run's id, the beginning of it, or" in " ".join(said.split())
    assert said.endswith("Examples:\n  pointsman show last\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_of_a_help_is_cut_on_a_terminal_of_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert called(monkeypatch, "help", name) == 0
    cut_off = [line for line in capsys.readouterr().out.splitlines() if re.search(r"\w=…", line) and "--" not in line]
    assert cut_off == []


def test_plan_show_without_a_run_is_no_task(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("show",), ("apply",), ("apply", "last")):
        assert called(monkeypatch, "plan", *words) == 2
        assert "say `plan show RUN` or `plan apply RUN FILE`" in capsys.readouterr().err


def test_an_unknown_command_names_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "shwo") == 2
    assert capsys.readouterr().err == "pointsman: unknown command 'shwo'; did you mean `pointsman show`?\n"
    assert called(monkeypatch, "zzzzzz") == 2
    assert "usage: pointsman [--context NAME] COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "example"), [(n, e) for n, command in COMMANDS.items() for e in command.examples])
def test_every_example_can_be_typed(name: str, example: str) -> None:
    typed = shlex.split(example.partition(" > ")[0].partition(" | ")[0])
    assert typed[0] == name
    command = typer.main.get_command(COMMANDS[name].load())
    context = command.make_context(name, typed[1:])
    if hasattr(command, "resolve_command") and typed[1:]:
        _, subcommand, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert subcommand is not None
        subcommand.make_context(typed[1], rest, parent=context)


def test_completion_offers_commands_options_and_subcommands() -> None:
    words = completed_words()
    assert set(words) == set(COMMANDS)
    assert {"--agent", "--verify", "--help"} <= set(words["run"])
    assert "import-tasks" in words["workflow"]
    script = SCRIPTS["bash"](words)
    asked = f"{script}\nCOMP_WORDS=(pointsman run --veri); COMP_CWORD=2; _pointsman; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "--verify --verify-from\n"
    asked = f"{script}\nCOMP_WORDS=(pointsman co); COMP_CWORD=1; _pointsman; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert "completion" in done.stdout.split()


def test_a_shell_without_completion_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "completion", "tcsh") == 2
    assert "there is one for bash, zsh, fish" in capsys.readouterr().err


def test_the_list_of_runs_has_a_header_and_says_who_acts() -> None:
    agent = pb.WaitingFor(kind=pb.WAIT_KIND_AGENT, who="code")
    held = pb.WaitingFor(kind=pb.WAIT_KIND_AGENT, who="code", holder="vm-coder")
    peer = pb.WaitingFor(kind=pb.WAIT_KIND_PEER, who="workflow")
    runs = [
        pb.Run(id="run_1", attention=pb.ATTENTION_DONE, intent="one\ntwo"),
        pb.Run(id="run_2", attention=pb.ATTENTION_NEEDS_YOU),
        pb.Run(id="run_3", attention=pb.ATTENTION_STUCK, waiting_for=agent),
        pb.Run(id="run_4", attention=pb.ATTENTION_WORKING, waiting_for=held),
        pb.Run(id="run_5", attention=pb.ATTENTION_WORKING, waiting_for=agent),
        pb.Run(id="run_6", attention=pb.ATTENTION_WORKING, waiting_for=peer),
    ]
    said = ["done", "needs you", "stuck: nobody can code", "working: vm-coder", "working: code", "working"]
    assert [attention_text(run) for run in runs] == said
    header, *lines = run_table(runs)
    assert header.split() == ["RUN", "SUBMITTED", "STATE", "GRADE", "ATTENTION", "WHAT"]
    assert len(lines) == 6
    assert lines[0].endswith("one two")
    assert list(run_table([])) == ["no runs; `pointsman run` starts one"]


def test_the_table_of_exit_codes_in_the_documents_is_complete() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    for code, meaning in EXIT_MEANINGS.items():
        assert f"| {code} | {meaning} |" in page
