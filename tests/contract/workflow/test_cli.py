"""`pointsman workflow …` against a running service: files in and out, verify on this machine, exit codes."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.workflow import app
from pointsman.cli.session.constraint_checks import check, command_of
from pointsman.services.workflow.formats.tasks_markdown import read_tasks
from tests.contract.workflow.shells import Shell, workflow_shell

DOCUMENT = {"project_id": "shop", "status": "paused", "progress": {"completed": ["T1"]}, "mine": [1, {"x": None}]}
TASKS = """## T1: first

- **actions**: edit
- **status**: pending

## T2: gate

- **depends**: T1
- **quality_gate**: true
- **status**: pending

"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with workflow_shell(tmp_path) as shell:
        yield shell


def test_a_state_file_goes_in_by_standard_input_and_comes_out_equal(shell: Shell, tmp_path: Path) -> None:
    assert shell.run("import -", stdin=json.dumps(DOCUMENT)).stdout == "shop\n"
    assert json.loads(shell.run("export shop").stdout) == DOCUMENT
    shell.run(f"export shop -o {tmp_path}/out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == DOCUMENT
    assert "already" in shell.run("import -", stdin=json.dumps(DOCUMENT), exits=1).stderr
    shell.run("import - --replace", stdin="{", exits=1)
    assert json.loads(shell.run("export shop").stdout) == DOCUMENT


def test_both_files_are_saved_whole_and_loaded_again(shell: Shell, tmp_path: Path) -> None:
    shell.run("import-tasks plan -", stdin=TASKS)
    folder = tmp_path / "flows"
    shell.run(f"save plan --folder {folder}")
    assert sorted(path.name for path in folder.iterdir()) == ["tasks.md", "workflow-state.json"]
    assert (folder / "tasks.md").read_text() == TASKS
    state = json.loads((folder / "workflow-state.json").read_text())
    (folder / "workflow-state.json").write_text(json.dumps({**state, "project_id": "copy"}))
    shell.run(f"load copy --folder {folder}")
    shell.run("export-tasks copy")
    assert shell.run("export-tasks copy").stdout == TASKS


def test_a_plan_of_spec_kit_goes_in_twice_and_its_boxes_are_ticked(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "tasks.md"
    file.write_text(
        "## Phase 1\n- [x] T001 Model in src/model.py\n- [ ] T002 [P] Store in src/store.py\n- [ ] T003 [P] Docs\n"
    )
    for _ in range(2):
        assert "1/3 done" in shell.run(f"import-tasks albums {file}").stdout
    shell.run("execute albums")
    shell.run("next albums")
    shell.run("complete albums T002")
    assert "1 tasks changed" in shell.run(f"write-back albums {file}").stdout
    assert file.read_text().count("[x]") == 2
    assert "0 tasks changed" in shell.run(f"write-back albums {file}").stdout


def test_a_file_without_tasks_is_refused_with_its_line(shell: Shell) -> None:
    refused = shell.run("import-tasks albums -", stdin='{"some": "json"}', exits=1).stderr
    assert "spec-kit" in refused


def test_the_default_folder_is_below_the_home_and_an_id_cannot_leave_it(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shell.run("import-tasks plan -", stdin=TASKS)
    shell.run("save plan")
    assert (tmp_path / ".claude" / "workflows" / "plan" / "tasks.md").exists()
    shell.run("load ../plan", exits=2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import-tasks", "the workflow that gets the tasks is missing: name it before the file"),
        ("import-tasks tasks.md", "for instance: pointsman workflow import-tasks my-plan tasks.md"),
        ("import-tasks docs/plan", "for instance: pointsman workflow import-tasks my-plan docs/plan"),
        ("import-tasks '' -", "the workflow that gets the tasks is missing"),
        ("import-tasks plän -", "may only have letters, digits, '_' and '-'"),
        ("import-tasks plan -", "there are no tasks to import"),
    ],
)
def test_importing_tasks_without_a_workflow_or_without_tasks_says_what_is_missing(
    shell: Shell, line: str, words: str
) -> None:
    said = shell.run(line, exits=2).stderr
    assert words in " ".join(said.replace("│", " ").split())


def test_a_task_file_with_errors_names_the_lines_and_changes_nothing(shell: Shell) -> None:
    shell.run("import-tasks plan -", stdin=TASKS)
    assert "line 2: unknown field" in shell.run("import-tasks plan -", stdin="## T1: a\n**x**: 1\n", exits=1).stderr
    assert shell.run("export-tasks plan").stdout == TASKS


def test_a_plan_is_driven_from_the_command_line(shell: Shell) -> None:
    shell.run("import-tasks plan -", stdin=TASKS)
    assert "running" in shell.run("execute plan --all --no-subagent").stdout
    assert shell.run("next plan").stdout == "T1  first\n"
    shell.run("complete plan T1 --characters 40")
    shell.run("next plan")
    shell.run("release plan")
    shell.run("next plan")
    assert "failed: task 'T2' failed: flaky" in shell.run("fail plan T2 --reason flaky").stdout
    shell.run("next plan", exits=4)
    assert shell.run("retry plan T2").stdout.startswith("retry 1 of 3")
    shell.run("pause plan --reason lunch")
    assert "resume (requested)" in shell.run("resumable").stdout
    shell.run("resume plan --step")
    assert "completed" in shell.run("skip plan T2 --reason later").stdout
    assert "quality gate 'T2' was skipped: later" in shell.run("show plan").stdout
    lines = shell.run("watch plan").stdout.splitlines()
    assert lines[0].split()[:2] == ["1", "created"]
    assert lines[-1].endswith("completed")
    assert json.loads(shell.run("list --status completed --json").stdout)["workflows"][0]["workflow_id"] == "plan"


def test_fields_are_set_and_a_wave_is_settled(shell: Shell) -> None:
    shell.run(
        "set plan --title shop --intake 'rewrite the api server' --priority 2 --mode progressive --session codex=s1"
    )
    shell.run("set plan --danger 90 --no-commit-pause")
    shell.run("import-tasks plan -", stdin="## T1: docs\n## T2: user api\n## T3: notes\n## T4: more\n")
    shown = json.loads(shell.run("show plan --json").stdout)["workflow"]
    assert (shown["title"], shown["priority"], shown["sessions"]) == ("shop", 2, {"codex": "s1"})
    assert shown["collaboration"]["lead"] == "codex"
    assert shown["context_metrics"]["danger_threshold"] == 90
    assert shown["progress"]["blocking"] == ["api_spec"]
    assert "1 tasks freed" in shell.run("unblock plan api_spec").stdout
    shell.run("execute plan --all")
    shell.run("next plan --limit 4")
    shell.run("settle plan --done T1 --done T2 --again T3=untested --reject T4", exits=2)
    assert (
        "failed: task 'T4' failed: wrong"
        in shell.run("settle plan --done T1 --done T2 --again T3=untested --reject T4=wrong").stdout
    )
    shell.run("set plan --mode odd", exits=2)


def test_modes_exclude_each_other(shell: Shell) -> None:
    shell.run("import-tasks plan -", stdin=TASKS)
    shell.run("execute plan --step --all", exits=2)


def test_an_audit_with_errors_exits_one(shell: Shell) -> None:
    shell.run("import-tasks plan -", stdin=TASKS)
    assert "T2/actions/no_actions" in shell.run("audit plan", exits=1).stdout


def constraints(**commands: str) -> str:
    held = [{"constraint_id": name, "description": name, "verify_cmd": command} for name, command in commands.items()]
    return json.dumps({"sets": [{"hard": held}]})


def test_verify_runs_the_commands_here_and_records_the_results(shell: Shell) -> None:
    python = shlex.quote(sys.executable)
    shell.run("import-tasks plan -", stdin="## T1: only\n")
    shell.run(
        "merge plan -",
        stdin=constraints(good=f"{python} -c pass", bad=f"{python} -c 'raise SystemExit(3)'", none="", pipe="a | b"),
    )
    shell.run("execute plan --all")
    shell.run("next plan")
    assert "paused: constraints" in shell.run("complete plan T1").stdout
    result = shell.run("verify plan", exits=1)
    assert "[1/4] good" in result.stderr
    assert "passed in" in result.stderr
    assert "unverified: no command" in result.stderr
    assert "unverified: needs a shell" in result.stderr
    assert "not met: bad, none, pipe" in result.stderr
    for name in ("bad", "none", "pipe"):
        shell.run(f"waive plan {name} --reason known")
    assert "completed" in shell.run("show plan").stdout
    shell.run("verify plan --again", exits=1)


def test_verify_with_nothing_left_to_check_is_content(shell: Shell) -> None:
    shell.run("import-tasks plan -", stdin=TASKS)
    shell.run("verify plan")
    assert json.loads(shell.run("verify plan --json").stdout)["unmet_constraint_ids"] == []


def test_each_result_is_recorded_as_soon_as_it_is_there(shell: Shell) -> None:
    python = shlex.quote(sys.executable)
    shell.run("import-tasks plan -", stdin="## T1: only\n")
    shell.run("merge plan -", stdin=constraints(good=f"{python} -c pass", bad=f"{python} -c 'raise SystemExit(3)'"))
    shell.run("verify plan", exits=1)
    events = json.loads(shell.run("show plan --json").stdout)["workflow"]["seq"]
    shell.run("verify plan --again", exits=1)
    assert int(json.loads(shell.run("show plan --json").stdout)["workflow"]["seq"]) == int(events) + 2


@pytest.mark.parametrize("wrapped", ['{"sets": [%s]}', '{"constraints": %s}', "%s"])
def test_constraints_are_merged_by_the_names_of_a_state_file(shell: Shell, wrapped: str) -> None:
    shell.run("import-tasks plan -", stdin="## T1: only\n")
    held = {"hard": [{"id": "C1", "description": "typed", "sourceModel": "codex", "verifyCmd": "make"}], "soft": []}
    shell.run("merge plan -", stdin=wrapped % json.dumps(held))
    (stored,) = json.loads(shell.run("show plan --json").stdout)["workflow"]["constraints"]["hard"]
    assert (stored["constraint_id"], stored["verify_cmd"]) == ("C1", "make")
    assert stored["source_model"] == "SOURCE_MODEL_CODEX"
    refused = shell.run("merge plan -", stdin='{"hard": [{"id": 7}]}', exits=2)
    assert "sets[0].constraints.hard.id" in refused.stderr


@pytest.mark.parametrize(
    ("name", "command"),
    [("ts_typecheck", "pnpm tsc --noEmit"), ("lint", "pnpm lint"), ("test", "pnpm test"), ("build", "pnpm build")],
)
def test_built_in_verifiers_are_the_seeds(name: str, command: str) -> None:
    assert command_of(name) == command


def test_a_command_that_is_not_there_or_takes_too_long_does_not_pass() -> None:
    assert check("no-such-command-here", 5).passed is False
    assert check(f"{shlex.quote(sys.executable)} -c 'import time; time.sleep(30)'", 0.2).passed is False
    assert check("'unclosed", 5).passed is None


@pytest.mark.parametrize(
    "command",
    ["echo done|grep missing", "true;false", "true&&false", "a | b", "(false)", "true>x", "echo $(false)", "echo `false`",
     'test "$HOME" = x', "true&"],
)  # fmt: skip
def test_what_only_a_shell_would_do_is_not_run_in_part_and_never_passes(command: str) -> None:
    assert check(command, 5).passed is None


@pytest.mark.parametrize("command", ["grep -c 'a|b;$x' /dev/null", "echo 'a && b'", "echo a\\ b", "echo 100$"])
def test_what_is_quoted_needs_no_shell(command: str) -> None:
    assert check(command, 5).passed is not None


def test_a_folder_is_loaded_whole_or_not_at_all(shell: Shell, tmp_path: Path) -> None:
    shell.run("import-tasks plan -", stdin=TASKS)
    shell.run(f"save plan --folder {tmp_path}")
    before = shell.run("export plan").stdout, shell.run("export-tasks plan").stdout
    (tmp_path / "tasks.md").write_text("## T1: a\n- **depends**: T2\n## T2: b\n- **depends**: T1\n")
    assert "cycle" in shell.run(f"load plan --replace --folder {tmp_path}", exits=1).stderr
    assert (shell.run("export plan").stdout, shell.run("export-tasks plan").stdout) == before
    (tmp_path / "tasks.md").write_text(before[1])
    shell.run(f"load plan --replace --folder {tmp_path}")
    assert shell.run("export-tasks plan").stdout == before[1]


def test_a_completed_workflow_is_loaded_with_its_tasks_beside_it(shell: Shell, tmp_path: Path) -> None:
    shell.run("import-tasks plan -", stdin="## T1: only\n")
    shell.run("execute plan --all")
    shell.run("next plan")
    shell.run("complete plan T1")
    shell.run(f"save plan --folder {tmp_path}")
    assert "completed" in shell.run(f"load again --folder {tmp_path}").stdout


def test_classification_needs_no_server() -> None:
    result = CliRunner().invoke(app, ["classify", "-"], input="## T1: user api\n## T2: docs\n")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["api_spec", "-"]


def test_a_plan_of_task_master_goes_in_again_changed_and_its_states_are_written_back(
    shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "tasks.json"

    def write(*tasks: Mapping[str, object]) -> None:
        file.write_text(json.dumps({"master": {"tasks": [{"id": 9, "title": "other"}]}, "next": {"tasks": tasks}}))

    def stored() -> dict[str, tuple[str, str]]:
        found, _ = read_tasks(shell.run("export-tasks plan").stdout)
        return {one.spec.task_id: (one.spec.name, str(one.status)) for one in found}

    first, second, third = ({"id": number, "title": f"task {number}"} for number in (1, 2, 3))
    write(first, second)
    for _ in range(2):
        assert "0/2 done" in shell.run(f"import-tasks plan {file} --tag next").stdout
    shell.run("execute plan --all")
    shell.run("next plan")
    in_progress = shell.run(f"import-tasks plan {file} --tag next", exits=1).stderr
    assert "cannot be stored while 1 tasks are in progress; settle or release them" in in_progress
    shell.run("complete plan 1")
    write({**first, "title": "renamed too late"}, {**second, "title": "renamed"}, third)
    for _ in range(2):
        shell.run(f"import-tasks plan {file} --tag next")
        assert stored() == {"1": ("task 1", "completed"), "2": ("renamed", "pending"), "3": ("task 3", "pending")}
    no_such_tag = shell.run(f"import-tasks plan {file} --tag soon", exits=1).stderr
    assert "'soon' is no tag of this file, which has master, next" in no_such_tag
    before = file.read_text()
    assert "1 tasks changed" in shell.run(f"write-back plan {file} --tag next").stdout
    assert file.read_text() == before.replace('{"id": 1,', '{"status": "done", "id": 1,')
    write(first, third)
    assert "1/2 done" in shell.run(f"import-tasks plan {file} --tag next").stdout
    assert stored() == {"1": ("task 1", "completed"), "3": ("task 3", "pending")}
    write(third)
    shell.run(f"import-tasks plan {file} --tag next")
    assert list(stored()) == ["1", "3"], "what is done stays"
