"""Seed 004: state files of version 3 are migrated, of version 4 taken as they are; barriers are rebuilt."""

import json
from datetime import timedelta
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Code, Refusal
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.enums import Disposition, Phase, PipelineStatus, Severity, StageStatus, Verdict
from pointsman.services.pipeline.domain.model import Pipeline, Return
from pointsman.services.pipeline.domain.views import phase
from pointsman.services.pipeline.formats.state_file_reader import ensure_v4, read_state_file
from pointsman.services.pipeline.formats.state_file_writer import write_state_file
from tests.unit.pipeline.driver import START, STRICT, Drive, at_barrier, said, start


def v3(**changes: Any) -> dict[str, Any]:
    """A quick-dev pipeline of the older engine, whose REVIEW is active."""
    return {
        "version": 3,
        "sessionId": "s-1",
        "classification": {"pipelineId": "quick-dev"},
        "dag": {"DEV": {"deps": []}, "REVIEW": {"deps": ["DEV"]}, "TEST": {"deps": ["REVIEW"]}},
        "stages": {
            "DEV": {"status": "completed", "agent": "developer", "verdict": "PASS"},
            "REVIEW": {"status": "active", "agent": "reviewer", "verdict": None},
            "TEST": {"status": "pending"},
        },
        "retries": {"REVIEW": 2},
        "pendingRetry": None,
        "enforced": True,
        "meta": {"initialized": True, "cancelled": False},
        **changes,
    }


def load(content: object, barrier_json: str = "") -> Drive:
    """The pipeline of a state file."""
    drive = Drive()
    drive.do(commands.ImportPipeline("p", read_state_file(json.dumps(content), barrier_json, "", START).imported))
    return drive


def test_a_state_of_version_3_is_migrated() -> None:
    state = ensure_v4(v3())
    assert state["version"] == 4
    assert state["pipelineActive"] is True
    assert state["activeStages"] == ["REVIEW"]
    assert state["retryHistory"] == {"REVIEW": []}
    assert state["crashes"] == {}
    assert "enforced" not in state
    assert state["meta"] == {"initialized": True}
    assert "pendingRetry" in state


@pytest.mark.parametrize(
    "changes",
    [
        {"enforced": False},
        {"meta": {"cancelled": True}},
        {"dag": {}},
        {"stages": {"DEV": {"status": "completed"}, "REVIEW": {"status": "skipped"}}},
    ],
)
def test_an_idle_or_complete_state_of_version_3_is_not_active(changes: dict[str, Any]) -> None:
    assert ensure_v4(v3(**changes))["pipelineActive"] is False


def test_a_state_of_version_4_is_taken_as_it_is() -> None:
    content = {"version": 4, "pipelineActive": True, "extra": [1], "pendingRetry": None}
    assert ensure_v4(content) == content


def test_an_imported_pipeline_goes_on() -> None:
    drive = load(v3())
    assert drive.pipeline.head.status is PipelineStatus.ACTIVE
    assert [drive.status(stage) for stage in ("DEV", "REVIEW", "TEST")] == [
        StageStatus.PASSED,
        StageStatus.ACTIVE,
        StageStatus.READY,
    ]
    assert drive.pipeline.stages["REVIEW"].retries == 2
    assert list(drive.timers) == ["barrier:post-dev"]
    drive.delegate("TEST")
    drive.complete("TEST")
    assert drive.complete("REVIEW").status is PipelineStatus.COMPLETED


def test_a_pending_retry_of_version_3_goes_back_to_dev() -> None:
    stages = {**v3()["stages"], "REVIEW": {"status": "failed", "verdict": {"verdict": "FAIL", "severity": "HIGH"}}}
    drive = load(v3(stages=stages, pendingRetry={"stages": [{"stage": "REVIEW"}]}))
    assert drive.pipeline.head.returns == ("DEV",)
    assert drive.status("DEV") is StageStatus.READY
    assert drive.status("REVIEW") is StageStatus.PENDING
    assert phase(drive.pipeline) is Phase.RETRYING


@pytest.mark.parametrize("review", ["failed", "completed"])
@pytest.mark.parametrize(
    "pending",
    [
        {"stage": "REVIEW"},
        {"stage": "REVIEW", "severity": "HIGH", "round": 1},
        {"stages": [{"id": "REVIEW", "severity": "HIGH", "round": 1}]},
        {"stages": [{"stage": "REVIEW"}]},
        {"stages": ["REVIEW"]},
    ],
    ids=str,
)
def test_a_state_of_version_3_in_the_middle_of_a_retry_stays_active_with_the_return_to_dev_pending(
    pending: object, review: str
) -> None:
    stages = {
        "DEV": {"status": "completed", "verdict": "PASS"},
        "REVIEW": {"status": review, "verdict": {"verdict": "FAIL", "severity": "HIGH"}},
        "TEST": {"status": "completed", "verdict": "PASS"},
    }
    drive = load(v3(stages=stages, retries={"REVIEW": 1}, pendingRetry=pending))
    assert drive.pipeline.head.status is PipelineStatus.ACTIVE
    assert drive.pipeline.head.returns == ("DEV",)
    assert drive.pipeline.stages["DEV"].returned == Return(round=1, failed=("REVIEW",))
    assert drive.pipeline.stages["REVIEW"].severity is Severity.HIGH
    statuses = [drive.status(stage) for stage in ("DEV", "REVIEW", "TEST")]
    assert statuses == [StageStatus.READY, StageStatus.PENDING, StageStatus.PENDING]
    state, _ = exported(drive.pipeline)
    assert state["pendingRetry"] == {"stages": [{"id": "REVIEW", "severity": "HIGH", "round": 1}]}
    assert state["retryHistory"] == {"REVIEW": []}
    drive.delegate("DEV")
    drive.complete("DEV")
    drive.complete("REVIEW")
    assert drive.complete("TEST").status is PipelineStatus.COMPLETED


def test_a_cancelled_state_of_version_3_has_no_pending_retry() -> None:
    cancelled = v3(meta={"cancelled": True}, pendingRetry={"stages": ["REVIEW"]})
    assert load(cancelled).pipeline.head.status is PipelineStatus.CANCELLED


def test_a_damaged_barrier_file_is_rebuilt_from_the_stages() -> None:
    for damaged in ("", "{broken", "[]", '{"a":1,"a":2}'):
        read = read_state_file(json.dumps(v3()), damaged, "", START)
        assert read.barriers_rebuilt
        assert list(read.imported.barriers) == ["post-dev"]
    started = json.dumps({"post-dev": {"startTime": "2025-12-31T23:58:00+00:00"}})
    read = read_state_file(json.dumps(v3()), started, "", START)
    assert not read.barriers_rebuilt
    assert (read.imported.barriers["post-dev"].due_at or START).minute == 3


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"version":2}', "{}", '{"version":4,"version":3}', '{"version":NaN}', "[" * 100_000,
     '{"version":4,"dag":{"DEV":{}},"stages":{"DEV":{"status":"eaten"}}}', '{"version":4,"dag":[]}',
     '{"version":3,"dag":{"COOK":{"deps":[]}}}', '{"version":4,"dag":{"DEV":{"deps":["X"]}}}',
     '{"version":4,"dag":{"DEV":{"deps":["REVIEW"]},"REVIEW":{"deps":["DEV"]}}}', '{"version":4,"sessionId":"\\u0000"}',
     '{"version":3,"dag":{"DEV":"x"},"stages":{}}', '{"version":4,"dag":{"DEV":{}},"stages":{"DEV":"x"}}',
     '{"version":4,"dag":{"DEV x":{}}}', '{"version":4,"dag":{"DEV":{"next":["' + "x" * 9999 + '"]}}}',
     '{"version":4,"dag":{"DEV":{"barrier":{"group":"a b"}}}}', '{"version":4,"dag":{"DEV":{}},"more":["\\ud800"]}',
     '{"version":4,"dag":{"DEV":{}},"more":1e999}', '{"version":4,"dag":{"DEV":{}},"more":"' + "x" * 70_000 + '"}',
     '{"version":4,"dag":{"DEV":{}},"more":' + "[" * 70 + "]" * 70 + "}",
     '{"version":4,"dag":{"DEV":{}},"meta":{"pointsman":{"policy":"lax"}}}',
     '{"version":4,"dag":{"DEV":{}},"meta":{"pointsman":{"requireNonce":"no"}}}',
     '{"version":4,"dag":{"DEV":{}},"meta":{"pointsman":{"barrierTimeoutSeconds":-1}}}'],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_state_file(text, "", "", START)
    assert refused.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize("node", [None, {}])
def test_a_node_that_says_nothing_stands_alone(node: object) -> None:
    read = read_state_file(json.dumps({"version": 4, "dag": {"DEV": node}, "stages": {}}), "", "", START)
    assert [known.stage for known in read.imported.nodes] == ["DEV"]


@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59+00:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"]
)
def test_a_barrier_of_any_year_waits_from_now_at_the_latest(moment: str) -> None:
    read = read_state_file(json.dumps(v3()), json.dumps({"post-dev": {"startTime": moment}}), "", START)
    barrier = read.imported.barriers["post-dev"]
    assert barrier.created_at <= START
    assert barrier.due_at is not None
    assert START <= barrier.due_at <= START + timedelta(seconds=300)


def exported(pipeline: Pipeline) -> tuple[dict[str, Any], dict[str, Any]]:
    state_json, barrier_json = write_state_file("p", pipeline)
    return json.loads(state_json), json.loads(barrier_json)


def test_a_pipeline_survives_export_and_import() -> None:
    drive = at_barrier()
    drive.complete("REVIEW", said("FAIL", severity="HIGH", context_file="/r.md"))
    state, barriers = exported(drive.pipeline)
    assert state["activeStages"] == ["TEST"]
    assert state["dag"]["REVIEW"]["barrier"]["group"] == "post-dev"
    assert state["dag"]["DEV"]["onFail"] is None
    assert barriers["post-dev"]["completed"] == ["REVIEW"]
    again = load(state, json.dumps(barriers))
    assert again.pipeline.head.marks == drive.pipeline.head.marks
    assert again.pipeline.stages["REVIEW"].verdict is Verdict.FAIL
    assert exported(again.pipeline)[0]["stages"] == state["stages"]
    assert again.complete("TEST").disposition is Disposition.RETURNED


def test_a_pending_return_survives_export_and_import() -> None:
    drive = at_barrier()
    drive.complete("REVIEW", said("FAIL"))
    drive.complete("TEST", auto=None)
    state, _ = exported(drive.pipeline)
    assert load(state).pipeline.head.returns == ("DEV",)


def test_own_dags_and_ended_pipelines_survive_too() -> None:
    drive = start("fix")
    drive.complete("DEV")
    state, barriers = exported(drive.pipeline)
    assert state["pipelineActive"] is False
    assert barriers == {}
    assert load(state).pipeline.head.status is PipelineStatus.COMPLETED
    state["classification"] = {}
    assert load(state).pipeline.head.status is PipelineStatus.COMPLETED
    drive = start("fix")
    drive.do(commands.CancelPipeline("p"))
    assert load(exported(drive.pipeline)[0]).pipeline.head.status is PipelineStatus.CANCELLED


def test_a_strict_pipeline_that_waits_for_a_person_still_waits_after_export_and_import() -> None:
    drive = at_barrier(policy=STRICT, require_nonce=True, barrier_timeout_seconds=77.0)
    nonce = drive.pipeline.stages["REVIEW"].nonce
    drive.complete("REVIEW", said("never heard of it", nonce=nonce))
    assert drive.status("REVIEW") is StageStatus.ESCALATED
    state, barriers = exported(drive.pipeline)
    again = load(state, json.dumps(barriers))
    assert again.pipeline.head.status is PipelineStatus.ESCALATED
    assert again.pipeline.head.settings == drive.pipeline.head.settings
    assert again.timers["barrier:post-dev"].due_at == drive.timers["barrier:post-dev"].due_at
    nonce = again.pipeline.stages["TEST"].nonce
    assert again.complete("TEST", said(nonce=nonce)).status is PipelineStatus.ESCALATED
    assert again.do(commands.SkipStage("p", "REVIEW")).status is PipelineStatus.COMPLETED


def test_what_nobody_knows_is_taken_as_it_is() -> None:
    state, _ = exported(at_barrier().pipeline)
    state["dashboard"] = {"port": [1, 2]}
    state["environment"] = {"language": "python", "tools": {"lint": True}}
    state["classification"]["pipelineId"] = "house-blend"
    state["classification"]["source"] = "llm"
    state["meta"]["initialized"] = True
    state["dag"]["DEV"]["label"] = "build it"
    state["stages"]["TEST"]["note"] = "slow"
    state["stages"]["GONE"] = {"status": "completed"}
    again, _ = exported(load(state).pipeline)
    again["meta"]["createdAt"] = state["meta"]["createdAt"]
    assert again == state


@pytest.mark.parametrize(
    ("drive", "expected"),
    [
        (start("none"), Phase.IDLE),
        (start("fix", auto=False), Phase.CLASSIFIED),
        (start("fix"), Phase.DELEGATING),
    ],
)
def test_the_phase_is_derived_for_display(drive: Drive, expected: Phase) -> None:
    assert phase(drive.pipeline) is expected
