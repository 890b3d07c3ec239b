"""`pointsman route` and `pointsman thinking`, in process."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.route import app as route_app
from pointsman.cli.commands.thinking import app as thinking_app
from pointsman.services.chassis.core.clock import SystemClock

runner = CliRunner()


@pytest.fixture(autouse=True)
def no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data directory without a store: what is decided here is decided in process."""
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))


def route(*arguments: str, stdin: str | None = None) -> Any:
    return runner.invoke(route_app, list(arguments), input=stdin)


def test_a_text_is_decided_and_explained() -> None:
    result = route("fix the build in src/")
    assert result.exit_code == 0
    assert result.stdout.startswith("ACTION WEAK → swarm_orchestrator")


@pytest.mark.parametrize("order", [("--json", "pwd"), ("pwd", "--json")])
def test_the_json_of_a_decision_has_every_field(order: tuple[str, str]) -> None:
    shown = json.loads(route(*order).stdout)
    fields = "mode confidence triggers route fast_path debate stakes debate_bypass rules rule_set_version".split()  # noqa: SIM905
    assert set(fields) <= set(shown)
    assert (shown["fast_path"], shown["debate_bypass"], shown["route"]) == (True, "trivial", "tool_specialist")


def test_a_text_may_begin_with_a_dash_and_come_from_standard_input() -> None:
    assert route("- fix the list").exit_code == 0
    assert json.loads(route("-", "--json", stdin="what is this?\n").stdout)["mode"] == "ANSWER"


def test_eval_measures_a_file(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    items = [
        {"text": "What is HPOS?", "mode": "ANSWER", "lang": "en", "confidence": "NONE"},
        {"text": "fix it", "mode": "ANSWER", "lang": "en", "stakes": None},
    ]
    file.write_text("\n".join(map(json.dumps, items)) + "\n\n", encoding="utf-8")
    shown = json.loads(route("eval", str(file), "--json").stdout)
    assert (shown["accuracy"], shown["false_positive_rate"], len(shown["wrong"])) == (0.5, 0.5, 1)
    assert "accuracy 50.0% (1/2)" in route("eval", str(file)).stdout


@pytest.mark.parametrize("content", ["{", '["x"]', '{"mode": "ANSWER"}'])
def test_eval_names_the_line_that_is_no_item(tmp_path: Path, content: str) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text(f'{{"text": "a"}}\n{content}\n', encoding="utf-8")
    result = route("eval", str(file))
    assert result.exit_code == 2
    assert ":2:" in result.stderr


def test_own_rules_come_from_a_file_and_bad_ones_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text('[{"id": "t", "effect": "reference", "pattern": "ABC-[0-9]+"}]', encoding="utf-8")
    assert json.loads(route("what is ABC-1?", "--rules", str(file), "--json").stdout)["mode"] == "ACTION"
    file.write_text('[{"id": "t", "effect": "reference", "pattern": "("}]', encoding="utf-8")
    result = route("x", "--rules", str(file))
    assert result.exit_code == 2
    assert "own.json" in result.stderr
    assert "rule 't'" in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[{"id": "t", "effect": "reference"}]', ("rule 't'", "pattern")),
        ('[{"id": "t", "effect": "sing", "pattern": "x"}]', ("rule 't'", "effect")),
        ('[{"effect": "reference", "pattern": "x"}]', ("rule 'number 1'", "id")),
        (
            '[{"id": "t", "effect": "reference", "pattern": "x", "patern": "y"}]',
            ("rule 't'", "'patern'", "description"),
        ),
        ('{"id": "t"}', ("a list of rules",)),
    ],
)
def test_a_bad_rule_of_ones_own_is_named_with_what_is_wrong(
    tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "own.json"
    file.write_text(content, encoding="utf-8")
    result = route("x", "--rules", str(file))
    assert result.exit_code == 2
    for word in words:
        assert word in result.stderr


def test_prompt_prints_the_rules_or_one_mode() -> None:
    assert "When in doubt, choose ACTION." in route("prompt").stdout
    assert route("prompt", "--mode", "answer").stdout.startswith("# Mode: ANSWER")
    assert route("prompt", "--mode", "sing").exit_code == 2


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".claude" / "state" / "thinking").mkdir(parents=True)
    return tmp_path


def think(project: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    latch = project / "latch.lock"
    result = runner.invoke(thinking_app, ["--dir", str(project), "--latch", str(latch), "--json", *arguments])
    return result.exit_code, json.loads(result.stdout)


def write(project: Path, name: str, content: str) -> None:
    (project / ".claude" / "state" / "thinking" / f"{name}.latest.yaml").write_text(content, encoding="utf-8")


def test_an_empty_project_starts_with_local_analysis(project: Path) -> None:
    code, envelope = think(project)
    assert (code, envelope["routed_to"], envelope["status"]) == (0, "thingking", "OK")
    assert envelope["reason"] == "No blocker card exists"


def test_artifacts_are_read_in_the_forms_they_are_written_in(project: Path) -> None:
    write(project, "blocker", "needs: [RESEARCH]\nenvelope: {status: OK, timestamp: 2025-12-28T10:30:00Z}\n")
    assert think(project)[1]["routed_to"] == "thingking_web"
    write(project, "research", "envelope: {status: OK, timestamp: '2025-12-28T11:30:00Z'}\n")
    assert think(project)[1]["routed_to"] == "thingking_web"
    write(project, "delta", "complete: true\n")
    write(project, "plan", "plan: {ready: true}\n")
    code, envelope = think(project)
    assert (code, envelope["routed_to"], envelope["next"]) == (0, None, "execute the plan")
    assert envelope["artifacts_read"] == [f"{name}.latest.yaml" for name in ("blocker", "research", "delta", "plan")]


def test_a_stop_with_an_error_exits_with_one(project: Path) -> None:
    write(project, "blocker", "needs: []\nenv_check: {TOKEN: 'sk-abcdefgh12345678'}\n")
    code, envelope = think(project)
    assert (code, envelope["error_code"], envelope["routed_to"]) == (1, "SECRET_LEAK", None)
    assert "abcdefgh" not in json.dumps(envelope)


@pytest.mark.parametrize(
    "content",
    [
        "envelope: {env_check: {A: sk-abcdefgh12345678}}\nenv_check: {A: SET}\n",
        "env_check: {A: sk-abcdefgh12345678, A: SET}\n",
        "env_check: {A: sk-abcdefgh12345678}\nenv_check: {A: SET}\n",
        "blocker: {env_check: [{A: sk-abcdefgh12345678}]}\nenvelope: {env_check: {A: SET}}\n",
        "env_check: {'postgres://u:sk-abcdefgh12345678@h': maybe}\n",
    ],
)
def test_no_place_of_env_check_hides_another(project: Path, content: str) -> None:
    write(project, "blocker", content)
    code, envelope = think(project)
    assert (code, envelope["error_code"]) == (1, "SECRET_LEAK")
    assert "abcdefgh" not in json.dumps(envelope)


def test_times_before_time_and_endless_numbers_are_taken_as_no_such_thing(project: Path) -> None:
    (project / "latch.lock").write_text(
        f"pid: {os.getpid()}\ncreated_at: 0001-01-01T00:00:00+14:00\n", encoding="utf-8"
    )
    assert think(project)[1]["error_code"] == "STALE_LOCK"
    (project / "latch.lock").unlink()
    endless = "0x" + "f" * 5000
    write(
        project,
        "blocker",
        f"needs: [RESEARCH, {endless}]\nenvelope: {{timestamp: '0001-01-01T00:00:00+14:00', status: {endless}}}\nenv_check: {{A: {endless}}}\n",
    )
    assert think(project)[1]["error_code"] == "SECRET_LEAK"
    write(
        project, "blocker", f"needs: RESEARCH\nenvelope: {{timestamp: 0001-01-01T00:00:00+14:00, status: {endless}}}\n"
    )
    assert think(project)[1]["routed_to"] == "thingking_web"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--dir", "/nope"), 2, "--dir"),
        (("full", "--dir", "/nope", "--local-command", "true"), 2, "--dir"),
        (("--local-command", "true"), 2, "thinking full"),
        (("full", "--web-command", "echo 'open"), 2, "--web-command"),
        (("full", "--local-command", "no-such-program-here"), 1, "cannot start 'no-such-program-here'"),
    ],
)
def test_options_that_cannot_be_followed_are_named(arguments: tuple[str, ...], code: int, words: str) -> None:
    result = runner.invoke(thinking_app, list(arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    "content", ["a: !!timestamp soon", "a: !!int ''", "a: !!bool perhaps", "a: " + "9" * 5000, "just text", "[1, 2]", "a: &x 1\nb: *x\n", "a: !!python/object:os.system {}", "{" * 5000, "\x00", "x: " + "y" * (1 << 20)]
)  # fmt: skip
def test_what_is_no_plain_mapping_is_unreadable(project: Path, content: str) -> None:
    write(project, "blocker", content)
    code, envelope = think(project)
    assert (code, envelope["error_code"], envelope["missing_inputs"]) == (
        1,
        "MISSING_ARTIFACT",
        ["blocker.latest.yaml"],
    )


def test_the_latch_is_judged_by_age_and_process(project: Path) -> None:
    latch = project / "latch.lock"
    now = SystemClock().now()
    young = f"{now - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    latch.write_text(f"pid: {os.getpid()}\ncreated_at: {young}\nreason: BASH_FAILED\n", encoding="utf-8")
    assert think(project)[1]["error_code"] is None
    latch.write_text(f"pid: 999999999\ncreated_at: {young}\n", encoding="utf-8")
    assert think(project)[1]["error_code"] == "STALE_LOCK"
    latch.write_text("failed!", encoding="utf-8")
    code, envelope = think(project)
    assert (code, envelope["error_code"], envelope["routed_to"]) == (0, "STALE_LOCK", "thingking")
    assert latch.exists()


def test_bench_output_is_never_read(project: Path) -> None:
    bench = project / ".claude" / "state" / "thinking" / "bench" / "run"
    bench.mkdir(parents=True)
    (bench / "blocker.latest.yaml").write_text("env_check: {A: 'http://x'}", encoding="utf-8")
    assert think(project)[0] == 0


def test_full_prints_both_steps_or_runs_them_and_wants_their_artifacts(project: Path) -> None:
    printed = runner.invoke(thinking_app, ["full"]).stdout.splitlines()
    assert printed == [
        "1) /thingking → blocker.latest.yaml, trail.latest.yaml",
        "2) /thingking_web → research.latest.yaml, delta.latest.yaml, plan.latest.yaml",
    ]
    folder = project / ".claude" / "state" / "thinking"
    touch = f"touch {folder}/blocker.latest.yaml {folder}/trail.latest.yaml"
    done = runner.invoke(thinking_app, ["full", "--dir", str(project), "--local-command", touch])
    assert (done.exit_code, done.stdout) == (0, "thingking: blocker.latest.yaml, trail.latest.yaml\n")
    stopped = runner.invoke(thinking_app, ["full", "--dir", str(project), "--web-command", "true"])
    assert stopped.exit_code == 1
    assert "research.latest.yaml" in stopped.stderr
    assert runner.invoke(thinking_app, ["half"]).exit_code == 2
