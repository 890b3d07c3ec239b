"""The rules of the workflow specification, tried with `pointsman workflow …` against a running service."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.workflow import app
from tests.contract.workflow.shells import Shell, workflow_shell

STATE = Path(__file__).parents[2] / "data" / "workflow-state.json"
PHASES = "## T1: a\n- **phase**: one\n## T2: b\n- **phase**: one\n## T3: c\n- **phase**: two\n"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with workflow_shell(tmp_path) as shell:
        yield shell


def plan(shell: Shell, markdown: str, options: str = "") -> None:
    """Store a plan and, with options, execute it."""
    shell.run("import-tasks plan -", stdin=markdown)
    if options:
        shell.run(f"execute plan {options}")


def state(shell: Shell) -> Any:
    """The state file that the workflow is exported as."""
    return json.loads(shell.run("export plan").stdout)


def merged(shell: Shell, *sets: dict[str, Any]) -> Any:
    """The answer to merging sets by the names of a state file."""
    return json.loads(shell.run("merge plan - --json", stdin=json.dumps({"sets": sets})).stdout)


def test_the_state_file_of_the_specification_is_imported_and_exported_unchanged(shell: Shell) -> None:
    assert shell.run(f"import {STATE}").stdout == "abc123\n"
    assert json.loads(shell.run("export abc123").stdout) == json.loads(STATE.read_text(encoding="utf-8"))


BLOCKED = "## T1: a\n## T2: b\n- **blocked_by**: api_spec\n## T3: c\n- **blocked_by**: design_spec\n"
WALK = [
    ("set plan --intake 'add a page'", "idle"),
    ("import-tasks plan -", "planned"),
    ("cancel plan", "idle"),
    ("import-tasks plan -", "planned"),
    ("execute plan --all", "running"),
    ("next plan", "running"),
    ("pause plan", "paused"),
    ("resume plan", "running"),
    ("fail plan T1 --reason flaky", "failed"),
    ("retry plan T1", "running"),
    ("next plan", "running"),
    ("complete plan T1", "blocked"),
    ("unblock plan api_spec", "running"),
    ("next plan", "running"),
    ("fail plan T2 --reason wrong", "failed"),
    ("unblock plan design_spec", "failed"),
    ("skip plan T2 --reason later", "running"),
    ("next plan", "running"),
    ("complete plan T3", "completed"),
]


def test_every_field_of_the_specifications_state_file_is_understood(shell: Shell) -> None:
    shell.run(f"import {STATE}")
    shown = shell.shown("abc123")
    assert (shown["title"], shown["progress"]["current_task"]) == ("my-project", "T3")
    assert shown["progress"]["status"] == "WORKFLOW_STATUS_RUNNING"
    assert [shown["progress"]["counts"][name] for name in ("completed", "blocked", "failed", "skipped")] == [2, 2, 0, 0]
    assert shown["settings"] == {
        "execution_mode": "EXECUTION_MODE_PHASE",
        "use_subagent": True,
        "pause_before_commit": True,
        "require_audit": False,
    }
    assert (shown["mode"], shown["consecutive_count"]) == ("WORKFLOW_MODE_PROGRESSIVE", 2)
    assert (shown["tasks_file"], shown["tech_design"]) == ("tasks.md", ".claude/docs/tech-design.md")
    assert (shown["unblocked"], shown["sessions"]) == ([], {"codex": "", "gemini": "", "claude": ""})
    metrics = shown["context_metrics"]
    assert [metrics[name] for name in ("estimated_tokens", "max_consecutive_tasks")] == [45_000, 5]
    assert [(one["task_id"], one["tokens"]) for one in metrics["history"]] == [("T1", 12_000), ("T2", 18_000)]
    assert shown["collaboration"] == {
        "mode": "dual",
        "lead": "codex",
        "support": ["claude"],
        "parallel_phases": ["analysis", "review"],
        "reason": "complex backend task",
        "confidence": 0.85,
    }
    (hard,), (soft,) = shown["constraints"]["hard"], shown["constraints"]["soft"]
    assert [hard[name] for name in ("constraint_id", "category", "source_model", "phase", "verification")] == [
        "C001",
        "CONSTRAINT_CATEGORY_INTERFACE",
        "SOURCE_MODEL_CODEX",
        "CONSTRAINT_PHASE_ANALYSIS",
        "VERIFICATION_STATUS_PASSED",
    ]
    assert (soft["constraint_id"], soft["verification"]) == ("C002", "VERIFICATION_STATUS_UNVERIFIED")
    assert len(shown["constraints"]["success_criteria"]) == 3
    assert (shown["audit"]["passed"], shown["audit"]["audited_at"]) == (True, "2026-01-08T10:25:00Z")
    assert (shown["created_at"], shown["updated_at"]) == ("2026-01-08T10:00:00Z", "2026-01-08T10:30:00Z")


def test_a_plan_walks_through_every_transition_of_the_specification(shell: Shell) -> None:
    walked = []
    for line, _ in WALK:
        shell.run(line, stdin=BLOCKED)
        walked.append((line, state(shell)["status"]))
    assert walked == WALK


def test_step_stops_after_each_task(shell: Shell) -> None:
    plan(shell, PHASES, "--step")
    assert shell.run("next plan --limit 5").stdout == "T1  a\n"
    assert "paused: step" in shell.run("complete plan T1").stdout
    shell.run("next plan", exits=4)
    shell.run("resume plan")
    assert shell.run("next plan --limit 5").stdout == "T2  b\n"


def test_phase_stops_when_the_phase_changes(shell: Shell) -> None:
    plan(shell, PHASES, "--phase")
    assert state(shell)["execution_mode"] == "phase"
    assert shell.run("next plan --limit 5").stdout == "T1  a\nT2  b\n"
    assert "running" in shell.run("complete plan T1").stdout
    assert "paused: phase_changed  phase 'one' is done, 'two' is next" in shell.run("complete plan T2").stdout
    shell.run("resume plan")
    assert shell.run("next plan --limit 5").stdout == "T3  c\n"
    assert "completed" in shell.run("complete plan T3").stdout


def test_all_stops_at_quality_gates_and_before_a_commit_only(shell: Shell) -> None:
    gate = "## T2: gate\n- **phase**: two\n- **quality_gate**: true\n"
    plan(shell, f"## T1: a\n- **phase**: one\n{gate}## T3: commit\n- **actions**: git_commit\n## T4: d\n", "--all")
    assert state(shell)["execution_mode"] == "quality_gate"
    shell.run("next plan")
    assert "running" in shell.run("complete plan T1").stdout
    shell.run("next plan")
    assert "paused: quality_gate" in shell.run("complete plan T2").stdout
    assert "running" in shell.run("resume plan").stdout
    assert "paused: before_commit" in shell.run("next plan", exits=4).stdout
    shell.run("resume plan")
    assert shell.run("next plan").stdout == "T3  commit\n"


@pytest.mark.parametrize(
    ("tasks", "option", "expected"),
    [(5, "", False), (6, "", True), (1, "--subagent", True), (6, "--no-subagent", False)],
)
def test_more_than_five_tasks_use_subagents_unless_an_option_says_otherwise(
    shell: Shell, tasks: int, option: str, expected: bool
) -> None:
    plan(shell, "".join(f"## T{number}: task\n" for number in range(tasks)), f"--all {option}")
    assert state(shell)["use_subagent"] is expected


def test_a_failed_task_is_retried_three_times_and_then_skipped(shell: Shell) -> None:
    plan(shell, "## T1: a\n## T2: b\n- **depends**: T1\n", "--all")
    for count in (1, 2, 3):
        shell.run("next plan")
        assert "failed: task 'T1' failed: flaky" in shell.run("fail plan T1 --reason flaky").stdout
        assert state(shell)["failure_reason"] == "task 'T1' failed: flaky"
        assert shell.run("retry plan T1").stdout.startswith(f"retry {count} of 3\nplan  running")
    shell.run("next plan")
    shell.run("fail plan T1 --reason flaky")
    assert "skip it or re-plan" in shell.run("retry plan T1", exits=1).stderr
    assert state(shell)["progress"]["failed"] == ["T1"]
    assert "running" in shell.run("skip plan T1 --reason 'done by hand'").stdout
    assert state(shell)["progress"]["skipped"] == ["T1"]
    assert shell.run("next plan").stdout == "T2  b\n"


def test_usage_is_a_quarter_of_the_characters_warns_at_60_and_stops_at_80_percent(shell: Shell) -> None:
    plan(shell, "## T1: a\n## T2: b\n", "--all --no-subagent")
    assert shell.run("usage plan 480000 --task T1").stdout.startswith("context usage 60.0 %\nplan  running")
    assert "warning" not in shell.run("show plan").stdout
    assert "over the warning threshold 60 %" in shell.run("usage plan 4 --task T1").stdout
    assert "running" in shell.run("usage plan 159996 --task T2").stdout
    assert "paused: context_usage" in shell.run("usage plan 4 --task T2").stdout
    metrics = state(shell)["contextMetrics"]
    assert (metrics["estimatedTokens"], metrics["warningThreshold"], metrics["dangerThreshold"]) == (160_001, 60, 80)
    assert [(one["taskId"], one["tokens"]) for one in metrics["history"]] == [
        ("T1", 120_000),
        ("T1", 1),
        ("T2", 39_999),
        ("T2", 1),
    ]


def test_a_task_blocked_by_both_specifications_runs_when_both_are_unblocked(shell: Shell) -> None:
    plan(shell, "## T1: a\n- **blocked_by**: api_spec, design_spec\n", "--all")
    assert state(shell)["status"] == "blocked"
    assert state(shell)["progress"]["blocked"] == ["T1"]
    assert shell.run("unblock plan api_spec").stdout.startswith("0 tasks freed\nplan  blocked")
    assert shell.run("unblock plan design_spec").stdout.startswith("1 tasks freed\nplan  running")
    assert state(shell)["unblocked"] == ["api_spec", "design_spec"]


def test_a_progressive_workflow_classifies_its_tasks_and_a_normal_one_does_not(shell: Shell) -> None:
    markdown = "## T1: order api\n## T2: 登录表单\n## T3: 表单骨架\n## T4: notes\n- **file**: src/pages/api/x.tsx\n"
    plan(shell, markdown)
    assert state(shell)["progress"]["blocked"] == []
    shell.run("set plan --mode progressive")
    plan(shell, markdown)
    assert state(shell)["progress"]["blocked"] == ["T1", "T2", "T4"]
    assert shell.shown("plan")["progress"]["blocking"] == ["api_spec", "design_spec"]
    printed = CliRunner().invoke(app, ["classify", "-", "--json"], input=markdown).stdout
    assert [one["classes"] for one in json.loads(printed)] == [
        ["api_spec"],
        ["design_spec"],
        [],
        ["api_spec", "design_spec"],
    ]


def listed(kind: str, count: int) -> list[dict[str, str]]:
    return [{"id": f"{kind}{number}", "description": f"{kind} number {number}"} for number in range(count)]


def test_merged_constraints_are_limited_and_what_is_left_out_is_named(shell: Shell) -> None:
    plan(shell, "## T1: a\n")
    wide = {
        "hard": listed("H", 8),
        "soft": listed("S", 8),
        "openQuestions": [f"question {number}?" for number in range(6)],
        "successCriteria": [f"criterion {number}" for number in range(8)],
    }
    printed = shell.run("merge plan -", stdin=json.dumps(wide)).stdout
    assert printed.splitlines() == [
        "7 hard, 7 soft constraints, 5 open questions, 7 success criteria",
        "  left out: hard constraint H7  H number 7",
        "  left out: soft constraint S7  S number 7",
        "  left out: open question  question 5?",
        "  left out: success criterion  criterion 7",
    ]
    kept = state(shell)["constraints"]
    assert [len(kept[name]) for name in ("hard", "soft", "openQuestions", "successCriteria")] == [7, 7, 5, 7]


def test_parallel_sets_unite_what_is_hard_rank_what_is_soft_and_intersect_what_is_success(shell: Shell) -> None:
    plan(shell, "## T1: a\n")
    codex = {
        "hard": [{"id": "C1", "description": "typed", "sourceModel": "codex"}],
        "soft": [{"id": "S1", "description": "short"}, {"id": "S2", "description": "fast"}],
        "openQuestions": ["which region?"],
        "openQuestionSources": {"which region?": "codex"},
        "successCriteria": ["tests pass", "types pass"],
    }
    gemini = {
        "hard": [
            {"id": "C1", "description": "typed", "sourceModel": "codex"},
            {"id": "C2", "description": "logged", "sourceModel": "gemini"},
        ],
        "soft": [{"id": "S3", "description": "fast"}],
        "openQuestions": ["which region?", "which zone?"],
        "successCriteria": ["types pass", "docs exist"],
    }
    answer = merged(shell, codex, gemini)
    held = state(shell)["constraints"]
    assert [(one["id"], one["sourceModel"]) for one in held["hard"]] == [("C1", "codex"), ("C2", "gemini")]
    assert [one["description"] for one in held["soft"]] == ["fast", "short"]
    assert held["openQuestions"] == ["which region?", "which zone?"]
    assert held["openQuestionSources"] == {"which region?": "codex"}
    assert held["successCriteria"] == ["types pass"]
    assert answer["dropped"]["success_criteria"] == ["tests pass", "docs exist"]


def test_a_set_of_constraints_with_a_field_that_nobody_knows_is_refused(shell: Shell) -> None:
    plan(shell, "## T1: a\n")
    refused = shell.run("merge plan -", stdin='{"sets": [{}, {"sucessCriteria": ["x"]}]}', exits=2)
    assert "sets[1]: unknown field sucessCriteria" in refused.stderr
    assert "successCriteria" in refused.stderr


def test_the_contracts_own_names_are_taken_without_a_constraint_beside_them(shell: Shell) -> None:
    plan(shell, "## T1: a\n")
    answer = merged(
        shell, {"open_questions": [{"text": "why?", "source": "claude"}], "success_criteria": ["tests pass"]}
    )
    assert answer["constraints"]["open_questions"] == [{"text": "why?", "source": "claude"}]
    assert answer["constraints"]["success_criteria"] == ["tests pass"]


@pytest.mark.parametrize(
    ("name", "command"),
    [("ts_typecheck", "tsc --noEmit"), ("lint", "lint"), ("test", "test"), ("build", "build")],
)
def test_a_built_in_verifier_runs_its_command_here_and_its_exit_code_decides(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str
) -> None:
    tool = tmp_path / "bin" / "pnpm"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\ntest -e {tmp_path}/green\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    plan(shell, "## T1: a\n", "--all")
    merged(shell, {"hard": [{"id": "C1", "description": "green", "verifyCmd": name}]})
    shell.run("next plan")
    assert "paused: constraints" in shell.run("complete plan T1").stdout
    assert f"[1/1] C1  pnpm {command}" in shell.run("verify plan", exits=1).stderr
    assert state(shell)["constraints"]["hard"][0]["verified"] is False
    (tmp_path / "green").touch()
    assert "completed" in shell.run("verify plan").stdout
    assert state(shell)["constraints"]["hard"][0]["verified"] is True
    assert (tmp_path / "called").read_text() == f"{command}\n" * 2
    (checked,) = shell.shown("plan")["constraints"]["hard"]
    assert checked["details"] == f"pnpm {command}: exit 0"


@pytest.mark.parametrize(("heavy", "limit"), [("", 8), ("- **actions**: a, b, c\n", 5), ("- **file**: a, b\n", 3)])
def test_tasks_in_a_row_pause_at_the_limit_that_the_next_task_allows(shell: Shell, heavy: str, limit: int) -> None:
    light = "".join(f"## T{number}: light\n" for number in range(limit))
    plan(shell, f"{light}## Tnext: the next one\n{heavy}", "--all --no-subagent")
    shell.run(f"next plan --limit {limit - 1}")
    done = " ".join(f"--done T{number}" for number in range(limit - 1))
    assert "running" in shell.run(f"settle plan {done}").stdout
    shell.run("next plan")
    assert "paused: consecutive_limit" in shell.run(f"complete plan T{limit - 1}").stdout
    assert state(shell)["contextMetrics"]["maxConsecutiveTasks"] == limit
    assert state(shell)["consecutive_count"] == limit
    shell.run("resume plan")
    assert state(shell)["consecutive_count"] == 0


@pytest.mark.parametrize(
    ("intake", "together"),
    [
        ("fix the typo", ("none", "", [], [])),
        ("add a column to the schema of the orders database", ("single", "codex", [], [])),
        ("rewrite the css layout of the login page", ("dual", "gemini", ["claude"], ["review"])),
        (
            "migrate the api server" + " and one more word" * 20,
            ("triple", "codex", ["gemini", "claude"], ["analysis", "prototype", "review"]),
        ),
    ],
)
def test_the_collaboration_of_a_plan_follows_what_was_asked_for(
    shell: Shell, intake: str, together: tuple[str, str, list[str], list[str]]
) -> None:
    shell.run(f"set plan --intake '{intake}'")
    found = state(shell)["collaboration"]
    assert found["schemaVersion"] == "2.1"
    assert (found["mode"], found["lead"], found["support"], found["parallelPhases"]) == together
    assert 0 < found["confidence"] <= 1


def test_an_audit_is_recorded_in_the_state_file_and_can_be_required(shell: Shell) -> None:
    plan(
        shell, "## T1: colour TBD\n- **actions**: edit\n## T2: polish, if needed\n- **actions**: edit\n- **file**: a\n"
    )
    shell.run("set plan --require-audit")
    assert "AUDIT" in shell.run("execute plan --all", exits=1).stderr.upper()
    assert "not passed: 1 errors" in shell.run("audit plan", exits=1).stdout
    audit = state(shell)["zeroDecisionAudit"]
    assert audit["passed"] is False
    assert [one for one in audit["antiPatterns"] if "T1" in one]
    assert [one for one in audit["remainingAmbiguities"] if "T2" in one]
    assert audit["auditedAt"]
    assert "running" in shell.run("execute plan --all --accept T1/name/undecided").stdout
