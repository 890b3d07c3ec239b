"""workflow-state.json: the seed's document comes back as it was, unknown fields survive, malformed ones are refused."""

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import TaskStatus, WorkflowStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.formats.workflow_state_reader import read_state
from pointsman.services.workflow.formats.workflow_state_writer import write_state
from tests.unit.workflow.flow import ID, Flow, planned, spec

NOW = datetime(2026, 2, 2, tzinfo=UTC)

DOCUMENT: dict[str, Any] = {
    "project_id": "shop",
    "project_name": "my-shop",
    "status": "running",
    "current_task": "T3",
    "execution_mode": "phase",
    "mode": "progressive",
    "use_subagent": True,
    "pause_before_commit": True,
    "consecutive_count": 2,
    "tasks_file": "tasks.md",
    "tech_design": ".claude/docs/tech-design.md",
    "unblocked": [],
    "sessions": {"codex": "s-1", "gemini": None, "claude": None},
    "progress": {"completed": ["T1", "T2"], "blocked": ["T5", "T6"], "failed": [], "skipped": []},
    "contextMetrics": {
        "estimatedTokens": 45000,
        "warningThreshold": 60,
        "dangerThreshold": 80,
        "maxConsecutiveTasks": 5,
        "history": [{"taskId": "T1", "tokens": 12000, "timestamp": "2026-01-08T10:10:00.000Z"}],
    },
    "collaboration": {
        "schemaVersion": "2.1",
        "mode": "dual",
        "lead": "codex",
        "support": ["claude"],
        "parallelPhases": ["analysis", "review"],
        "reason": "backend",
        "confidence": 0.85,
    },
    "constraints": {
        "hard": [
            {
                "id": "C001",
                "description": "响应必须包含 requestId",
                "type": "hard",
                "category": "interface",
                "sourceModel": "codex",
                "phase": "analysis",
                "verified": True,
            }
        ],
        "soft": [
            {
                "id": "C002",
                "description": "validate input",
                "type": "soft",
                "category": "data",
                "sourceModel": "claude",
                "phase": "analysis",
                "verified": False,
            }
        ],
        "openQuestions": ["which region?"],
        "successCriteria": ["type check passes"],
    },
    "zeroDecisionAudit": {
        "passed": True,
        "antiPatterns": [],
        "remainingAmbiguities": ["T4 is vague"],
        "auditedAt": "2026-01-08T10:25:00Z",
    },
    "created_at": "2026-01-08T10:00:00Z",
    "updated_at": "2026-01-08T10:30:00+00:00",
    "failure_reason": None,
}


def imported(document: Any, workflow_id: str = "") -> Flow:
    read = read_state(json.dumps(document, ensure_ascii=False), workflow_id, NOW)
    flow = Flow()
    flow.do(commands.ImportState(read.header.workflow_id, read))
    return flow


def exported(flow: Flow) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(write_state(flow.state))
    return document


def changed(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(DOCUMENT), **fields}


def paths_of(document: Any) -> list[str]:
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(Refusal) as caught:
        read_state(text, "", NOW)
    assert caught.value.reason is Reason.INVALID_FIELD
    return [violation.field.removeprefix("state_json") for violation in caught.value.violations]


def test_the_seeds_document_comes_back_equal() -> None:
    assert exported(imported(DOCUMENT)) == DOCUMENT
    assert list(exported(imported(DOCUMENT))) == list(DOCUMENT)


def test_every_field_of_the_seeds_document_is_written_from_what_was_understood() -> None:
    seed = json.loads((Path(__file__).parents[2] / "data" / "workflow-state.json").read_text(encoding="utf-8"))
    flow = imported(seed)
    flow.current = replace(flow.state, details=replace(flow.state.details, document=""))
    assert exported(flow) == seed


def test_unknown_fields_survive_at_every_depth_and_through_changes() -> None:
    document = changed(own={"x": [1, None, {"y": "ü"}]})
    document["contextMetrics"]["mine"] = 1
    document["constraints"]["hard"][0]["note"] = "keep me"
    document["constraints"]["extra"] = []
    flow = imported(document)
    assert exported(flow) == document
    flow.do(commands.RecordUsage("shop", "T3", characters=400))
    flow.do(commands.WaiveConstraint("shop", "C001", "known", "ann"))
    after = exported(flow)
    assert after["own"] == document["own"]
    assert after["contextMetrics"]["mine"] == 1
    assert after["contextMetrics"]["estimatedTokens"] == 45100
    assert after["constraints"]["hard"][0]["note"] == "keep me"
    assert after["constraints"]["hard"][0]["waiver"] == "known"
    assert after["constraints"]["extra"] == []


def test_a_short_document_comes_back_equal() -> None:
    document = {"project_id": "p", "status": "idle"}
    assert exported(imported(document)) == document


def test_a_state_imports_without_its_tasks_and_takes_them_later() -> None:
    flow = imported(changed(retry_counts={"T3": 2}))
    assert flow.statuses() == {
        "T1": "completed", "T2": "completed", "T5": "blocked", "T6": "blocked", "T3": "pending",
    }  # fmt: skip
    assert flow.state.header.blocking == {"api_spec": 2, "design_spec": 2}
    tasks = planned(spec("T1"), spec("T2"), spec("T3", "T1"), spec("T4"), spec("T5", blocked_by=("api_spec",)))
    flow.do(commands.UpsertPlan("shop", tasks=tasks))
    assert flow.statuses() == {
        "T1": "completed", "T2": "completed", "T3": "pending", "T4": "pending", "T5": "blocked",
    }  # fmt: skip
    assert flow.task("T1").spec.name == "do T1"
    assert flow.task("T3").retry_count == 2
    assert exported(flow)["retry_counts"] == {"T3": 2}


def test_a_failed_task_known_by_id_stays_failed_when_its_definition_comes() -> None:
    document = changed(status="failed", failure_reason="tests", current_task="T3")
    document["progress"]["failed"] = ["T3"]
    flow = imported(document)
    flow.do(commands.UpsertPlan("shop", tasks=planned(spec("T3"), spec("T4"))))
    assert flow.statuses()["T3"] == "failed"
    assert flow.status is WorkflowStatus.FAILED


def test_an_import_over_a_stored_workflow_needs_replace_and_an_allowed_change_of_state() -> None:
    flow = imported(DOCUMENT)
    read = read_state(json.dumps(changed(status="paused")), "", NOW)
    assert flow.refused(commands.ImportState("shop", read)).reason is Reason.ALREADY_EXISTS
    flow.do(commands.ImportState("shop", read, replace=True))
    assert flow.status is WorkflowStatus.PAUSED
    blocked = read_state(json.dumps(changed(status="blocked")), "", NOW)
    refusal = flow.refused(commands.ImportState("shop", blocked, replace=True))
    assert (refusal.reason, refusal.metadata["state"]) == (Reason.STATE_FORBIDS, "paused")


def test_an_import_is_refused_while_a_task_is_in_progress() -> None:
    flow = imported(DOCUMENT)
    assert [task.task_id for task in flow.do(commands.NextTasks("shop")).tasks] == ["T3"]
    read = read_state(json.dumps(DOCUMENT), "", NOW)
    assert flow.refused(commands.ImportState("shop", read, replace=True)).reason is Reason.STATE_FORBIDS


def test_an_import_over_a_workflow_that_a_run_owns_is_refused() -> None:
    flow = imported(DOCUMENT)
    flow.do(commands.UpsertPlan("shop", Fields(owner_run_id="r1")))
    read = read_state(json.dumps(DOCUMENT), "", NOW)
    assert flow.refused(commands.ImportState("shop", read, replace=True)).reason is Reason.WORKFLOW_OWNED


def test_a_workflow_that_was_never_imported_is_written_with_the_seeds_names() -> None:
    flow = Flow()
    flow.plan(spec("a"), title="mine")
    document = exported(flow)
    assert set(DOCUMENT) - {"collaboration", "zeroDecisionAudit"} == set(document)
    assert document["project_id"] == ID
    assert exported(imported(document)) == document


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("[]", "must be an object"),
        ('{"status": "idle",}', "line 1"),
        ('{"status": "idle", "status": "failed"}', "stands twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", "nested deeper"),
        ('{"a": 12345678901234567890}', "digits"),
        ('{"a": "\\u0000"}', "NUL"),
        ('{"a": "\\ud800"}', "surrogate"),
    ],
)
def test_malformed_json_is_refused(text: str, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_state(text, "p", NOW)
    assert words in caught.value.violations[0].description


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"project_id": "../up"}, ".project_id"),
        ({"status": "lost"}, ".status"),
        ({"status": None}, ".status"),
        ({"execution_mode": "fast"}, ".execution_mode"),
        ({"use_subagent": "yes"}, ".use_subagent"),
        ({"consecutive_count": -1}, ".consecutive_count"),
        ({"consecutive_count": True}, ".consecutive_count"),
        ({"unblocked": [1]}, ".unblocked"),
        ({"sessions": {"codex": 1}}, ".sessions"),
        ({"progress": {"completed": "T1"}}, ".progress.completed"),
        ({"progress": {"completed": ["T1"], "failed": ["T1"]}}, ".progress.failed"),
        ({"progress": {"completed": ["no id"]}}, ".progress"),
        ({"contextMetrics": {"history": [1]}}, ".contextMetrics.history"),
        ({"contextMetrics": {"history": [{"timestamp": "noon"}]}}, ".contextMetrics.history.timestamp"),
        ({"collaboration": {"confidence": 7}}, ".collaboration.confidence"),
        ({"collaboration": {"mode": "quad"}}, ".collaboration.mode"),
        ({"collaboration": {"lead": "gpt"}}, ".collaboration.lead"),
        ({"collaboration": {"support": ["claude", "gpt"]}}, ".collaboration.support"),
        ({"collaboration": {"parallelPhases": ["lunch"]}}, ".collaboration.parallelPhases"),
        ({"constraints": {"hard": [{"id": "C1"}]}}, ".constraints.hard.description"),
        ({"constraints": {"hard": [{"id": "C1", "description": "d", "phase": "x"}]}}, ".constraints.hard.phase"),
        ({"constraints": {"hard": [{"id": "C1", "description": "d", "type": "soft"}]}}, ".constraints.hard.type"),
        ({"zeroDecisionAudit": []}, ".zeroDecisionAudit"),
        ({"created_at": 5}, ".created_at"),
        ({"status": "completed"}, ".progress"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named_by_its_path(fields: dict[str, Any], path: str) -> None:
    assert path in paths_of(changed(**fields))


@pytest.mark.parametrize(("kind", "limit"), [("hard", 7), ("soft", 7), ("openQuestions", 5), ("successCriteria", 7)])
def test_a_document_holds_as_many_constraints_as_the_limits_allow(kind: str, limit: int) -> None:
    def held(count: int) -> dict[str, Any]:
        if kind in ("hard", "soft"):
            return {kind: [{"id": f"C{number}", "description": "d", "type": kind} for number in range(count)]}
        return {kind: [f"text {number}" for number in range(count)]}

    assert exported(imported(changed(constraints=held(limit))))["constraints"] == held(limit)
    assert paths_of(changed(constraints=held(limit + 1))) == [f".constraints.{kind}"]


def test_a_completed_document_with_an_unverified_hard_constraint_is_refused() -> None:
    document = changed(status="completed", current_task=None, progress={"completed": ["T1"]})
    document["constraints"]["hard"][0]["verified"] = False
    assert paths_of(document) == [".constraints.hard"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*DOCUMENT, "mine"]), JSON, max_size=4))
def test_any_document_is_taken_and_comes_back_equal_or_is_refused(fields: dict[str, Any]) -> None:
    document = changed(**fields)
    try:
        flow = imported(document, "p")
    except Refusal as refusal:
        assert refusal.reason is Reason.INVALID_FIELD  # noqa: PT017
        return
    assert exported(flow) == document


def test_the_states_of_tasks_in_the_document_are_the_seeds_four_lists() -> None:
    flow = imported(DOCUMENT)
    flow.do(commands.SkipTask("shop", "T5", "no"))
    progress = exported(flow)["progress"]
    assert progress == {"completed": ["T1", "T2"], "blocked": ["T6"], "failed": [], "skipped": ["T5"]}
    assert flow.task("T6").status is TaskStatus.BLOCKED
