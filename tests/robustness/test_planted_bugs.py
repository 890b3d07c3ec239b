"""The auditor finds every bug that was planted into sound stores, and names the entity, the seq and nothing else."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pointsman.audit.stores import audit_stores
from pointsman.services.chassis.core.config import StoreSettings
from tests.robustness.forgery import Forger
from tests.robustness.sound import DIRECT_PLAN, RETRIED, WAITING, live

Planted = set[tuple[str, str, str, int]]
"""What has to be found: store, invariant, entity, seq."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of a control plane that was used well: a completed run, one that asks, a plan, two pipelines."""
    data = tmp_path_factory.mktemp("sound")
    asyncio.run(live(data))
    return data


async def _found(data: Path) -> Planted:
    findings = await audit_stores(StoreSettings(data=data), settle_seconds=0.0)
    return {
        (name, violation.invariant, violation.entity_id, violation.seq)
        for name, found in findings.items()
        for violation in found.violations
    }


async def test_stores_that_were_used_well_have_no_violations(sound: Path) -> None:
    assert await _found(sound) == set()


def _completed_run(forger: Forger) -> str:
    return forger.entity("orchestrator", "status = 'COMPLETE'")


def _asking_run(forger: Forger) -> str:
    return forger.entity("orchestrator", "status <> 'COMPLETE'")


def _first_assignment(forger: Forger, run_id: str) -> int:
    return forger.seq("orchestrator", run_id, "assigned")


def an_attempt_too_many(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    forger.sql("orchestrator", "UPDATE assignments SET attempt = 4, epoch = 4 WHERE assignment_id = ?", f"{run_id}.a1")
    return {("orchestrator", "lease", run_id, _first_assignment(forger, run_id))}


def a_completion_under_an_older_epoch(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    forger.sql(
        "orchestrator", "UPDATE assignments SET agent_id = 'second', epoch = 2 WHERE assignment_id = ?", f"{run_id}.a1"
    )
    return {("orchestrator", "lease", run_id, _first_assignment(forger, run_id))}


def a_lease_that_lives_on(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    forger.sql("orchestrator", "UPDATE assignments SET status = 'LEASED' WHERE assignment_id = ?", f"{run_id}.a1")
    return {("orchestrator", "lease", run_id, _first_assignment(forger, run_id))}


def an_author_who_judges(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    forger.sql(
        "orchestrator", "UPDATE assignments SET excluded_agent = agent_id WHERE assignment_id = ?", f"{run_id}.a1"
    )
    return {("orchestrator", "lease", run_id, _first_assignment(forger, run_id))}


def _a_judged_piece(forger: Forger) -> tuple[str, str, str]:
    """A run, an assignment in it that judges somebody's work, and that author."""
    run_id = _completed_run(forger)
    wanted = "SELECT assignment_id, excluded_agent FROM assignments WHERE entity_id = ? AND excluded_agent <> ''"
    assignment_id, author = forger.sql("orchestrator", f"{wanted} ORDER BY assignment_id", run_id)[0]
    return run_id, assignment_id, author


def _held(forger: Forger, principal: str, condition: str, *values: str) -> None:
    """Leases of a principal that is told apart by its name."""
    change = "UPDATE assignments SET principal = ?, principal_epoch = epoch, apart_epoch = epoch WHERE entity_id = ?"
    forger.sql("orchestrator", f"{change} AND {condition}", principal, *values)


def a_principal_that_judges_its_own_work(forger: Forger) -> Planted:
    run_id, assignment_id, author = _a_judged_piece(forger)
    _held(forger, "alice", "agent_id = ?", run_id, author)
    _held(forger, "alice", "assignment_id = ?", run_id, assignment_id)
    offered = "SELECT seq FROM journal WHERE entity_id = ? AND event = 'assigned' AND payload LIKE ?"
    seq = forger.sql("orchestrator", offered, run_id, f'%"{assignment_id}"%')[0][0]
    return {("orchestrator", "lease", run_id, seq)}


async def test_a_principal_may_judge_what_another_one_made(sound: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(sound, data)
    run_id, assignment_id, author = _a_judged_piece(Forger(data))
    _held(Forger(data), "alice", "agent_id = ?", run_id, author)
    _held(Forger(data), "bob", "assignment_id = ?", run_id, assignment_id)
    assert await _found(data) == set()


def _end_of(forger: Forger, capability: str) -> tuple[str, int]:
    """A run with an assignment of this capability that was completed, and where its end stands."""
    wanted = "SELECT entity_id, assignment_id FROM assignments WHERE capability = ? AND status = 'DONE'"
    run_id, assignment_id = forger.sql("orchestrator", f"{wanted} ORDER BY assignment_id", capability)[0]
    ended = "SELECT seq FROM journal WHERE entity_id = ? AND event = 'assignment_ended' AND payload LIKE ?"
    return run_id, forger.sql("orchestrator", ended, run_id, f'%"{assignment_id}"%')[0][0]


def _taken_from(forger: Forger, capability: str, **who: Any) -> Planted:
    """A result that was taken from somebody else than it really was."""
    run_id, seq = _end_of(forger, capability)

    def edit(rows: list[Any]) -> None:
        rows[seq - 1]["payload"] = json.dumps({**json.loads(rows[seq - 1]["payload"]), **who})

    forger.journal("orchestrator", run_id, edit)
    return {("orchestrator", "judge", run_id, seq)}


def an_author_whose_review_was_taken(forger: Forger) -> Planted:
    return _taken_from(forger, "REVIEW", principal=_author(forger))


def an_author_whose_verification_was_taken(forger: Forger) -> Planted:
    return _taken_from(forger, "VERIFY", principal=_author(forger))


def _author(forger: Forger) -> str:
    seq = forger.seq("orchestrator", _completed_run(forger), "work_handed_in")
    wanted = "SELECT payload FROM journal WHERE entity_id = ? AND seq = ?"
    return str(json.loads(forger.sql("orchestrator", wanted, _completed_run(forger), seq)[0][0])["principal"])


def a_verifier_that_nobody_granted(forger: Forger) -> Planted:
    return _taken_from(forger, "VERIFY", principal="coder/box-1", granted="CODE")


def a_verifier_that_is_not_named(forger: Forger) -> Planted:
    return _taken_from(forger, "VERIFY", principal="", granted=None)


def a_lost_lease(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    forger.sql("orchestrator", "DELETE FROM assignments WHERE assignment_id = ?", f"{run_id}.a1")
    return {("orchestrator", "lease", run_id, _first_assignment(forger, run_id))}


def a_move_outside_the_table(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    seq = forger.seq("orchestrator", run_id, "intake_ok")
    forger.journal("orchestrator", run_id, lambda rows: rows[seq - 1].update(event="keep"))
    return {("orchestrator", "table", run_id, seq)}


def an_acceptance_without_evidence(forger: Forger) -> Planted:
    run_id = _completed_run(forger)

    def strip(data: Any) -> None:
        for claim in data["work"]["claims"]:
            claim["evidence"] = ["NOTE"]

    forger.payload("orchestrator", run_id, "work_handed_in", strip)
    accepted = forger.seq("orchestrator", run_id, "wave_concluded") - 1
    return {("orchestrator", "evidence", run_id, accepted)}


def an_acceptance_without_work(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    seq = forger.seq("orchestrator", run_id, "work_handed_in")
    empty = '{"risks":[]}'
    forger.journal("orchestrator", run_id, lambda rows: rows[seq - 1].update(event="risks_noted", payload=empty))
    accepted = forger.seq("orchestrator", run_id, "wave_concluded") - 1
    return {("orchestrator", "evidence", run_id, accepted)}


def a_run_that_waits_for_nobody(forger: Forger) -> Planted:
    run_id = _asking_run(forger)
    forger.journal("orchestrator", run_id, lambda rows: rows.pop())
    return {("orchestrator", "waiting", run_id, forger.version("orchestrator", run_id))}


def _effect(forger: Forger, entity_id: str, seq: int, created_at_us: int) -> None:
    forger.sql(
        "orchestrator",
        "INSERT INTO outbox VALUES (?, ?, 0, 'workflow.see', '{}', 'local', '', ?, 0, ?, '', 0, '')",
        entity_id, seq, created_at_us, created_at_us,
    )  # fmt: skip


def an_effect_that_nobody_asked_for(forger: Forger) -> Planted:
    run_id = _asking_run(forger)
    _effect(forger, run_id, 999, 2**60)
    return {("orchestrator", "outbox", run_id, 999)}


def an_effect_that_comes_twice(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    seq = forger.seq("orchestrator", run_id, "peer_called")
    _effect(forger, run_id, seq, 2**60)
    return {("orchestrator", "outbox", run_id, seq)}


async def test_an_ended_run_may_still_have_to_tell_its_peers(sound: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(sound, data)
    _effect(Forger(data), _completed_run(Forger(data)), 2, 2**60)
    assert await _found(data) == set()


def an_effect_that_was_forgotten(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    _effect(forger, run_id, 2, 1)
    return {("orchestrator", "outbox", run_id, 2)}


def a_barrier_that_was_not_open(forger: Forger) -> Planted:
    seq = forger.payload("pipeline", RETRIED, "BARRIER_RESOLVED", lambda data: data.update(number=9))
    return {("pipeline", "barrier", RETRIED, seq)}


def a_member_that_counts_twice(forger: Forger) -> Planted:
    seq = forger.payload("pipeline", RETRIED, "BARRIER_CREATED", lambda data: data.update(members=["REVIEW", "REVIEW"]))
    return {("pipeline", "barrier", RETRIED, seq)}


def a_retry_too_many(forger: Forger) -> Planted:
    def allow_none(data: Any) -> None:
        for node in data["nodes"]:
            node["max_retries"] = 0

    forger.payload("pipeline", RETRIED, "PIPELINE_STARTED", allow_none)
    shape = "UPDATE shapes SET body = replace(body, '\"max_retries\":3', '\"max_retries\":0') WHERE entity_id = ?"
    forger.sql("pipeline", shape, RETRIED)
    return {("pipeline", "retries", RETRIED, forger.seq("pipeline", RETRIED, "STAGE_RETRY"))}


def a_forced_stage_that_passes(forger: Forger) -> Planted:
    seqs = forger.sql(
        "pipeline", "SELECT max(seq) FROM journal WHERE entity_id = ? AND event = 'STAGE_COMPLETED'", RETRIED
    )

    def edit(rows: list[dict[str, Any]]) -> None:
        row = rows[seqs[0][0] - 1]
        row["payload"] = row["payload"].replace('"degraded":false', '"degraded":true')

    forger.journal("pipeline", RETRIED, edit)
    return {("pipeline", "evidence", RETRIED, forger.seq("pipeline", RETRIED, "PIPELINE_COMPLETED"))}


def a_barrier_without_a_timer(forger: Forger) -> Planted:
    forger.sql("pipeline", "DELETE FROM timers WHERE entity_id = ?", WAITING)
    return {("pipeline", "waiting", WAITING, forger.version("pipeline", WAITING))}


def _not_its_fold(forger: Forger, statement: str) -> Planted:
    forger.sql("pipeline", statement, RETRIED)
    return {("pipeline", "fold", RETRIED, forger.version("pipeline", RETRIED))}


def a_stage_row_that_was_edited(forger: Forger) -> Planted:
    passed = "replace(body, '\"retries\":1', '\"retries\":0')"
    return _not_its_fold(forger, f"UPDATE stages SET body = {passed} WHERE entity_id = ?")


def a_stage_row_that_is_gone(forger: Forger) -> Planted:
    return _not_its_fold(forger, "DELETE FROM stages WHERE entity_id = ? AND stage = 'TEST'")


def a_stage_row_that_cannot_be_read(forger: Forger) -> Planted:
    return _not_its_fold(forger, "UPDATE stages SET body = '[]' WHERE entity_id = ? AND stage = 'DEV'")


def a_stage_that_nobody_planned(forger: Forger) -> Planted:
    return _not_its_fold(forger, "INSERT INTO stages VALUES (?, 'QA', '{}')")


def a_shape_that_was_edited(forger: Forger) -> Planted:
    return _not_its_fold(forger, "UPDATE shapes SET body = replace(body, 'post-dev', 'later') WHERE entity_id = ?")


def a_report_that_was_edited(forger: Forger) -> Planted:
    return _not_its_fold(forger, "UPDATE reports SET body = 'All is well.' WHERE entity_id = ? AND body LIKE '%TEST%'")


def a_report_that_is_gone(forger: Forger) -> Planted:
    return _not_its_fold(forger, "DELETE FROM reports WHERE entity_id = ? AND body LIKE '%TEST%'")


def a_task_before_its_dependency(forger: Forger) -> Planted:
    def reverse(data: Any) -> None:
        data["tasks"][0]["spec"]["depends"] = ["T3"]

    forger.payload("workflow", DIRECT_PLAN, "plan_stored", reverse)
    return {("workflow", "dependency", DIRECT_PLAN, forger.seq("workflow", DIRECT_PLAN, "claimed"))}


def a_plan_completed_with_work_left(forger: Forger) -> Planted:
    def add(data: Any) -> None:
        data["tasks"].append({"spec": {"task_id": "T9", "name": "left"}, "position": 4})

    forger.payload("workflow", DIRECT_PLAN, "plan_stored", add)
    forger.sql("workflow", "INSERT INTO tasks VALUES (?, 'T9', 4, 'pending', 0, 0, 0, '', '', 0, '{}')", DIRECT_PLAN)
    return {("workflow", "completion", DIRECT_PLAN, forger.seq("workflow", DIRECT_PLAN, "completed"))}


def a_task_row_that_was_edited(forger: Forger) -> Planted:
    forger.sql("workflow", "UPDATE tasks SET status = 'failed' WHERE entity_id = ? AND task_id = 'T1'", DIRECT_PLAN)
    return {("workflow", "fold", DIRECT_PLAN, forger.version("workflow", DIRECT_PLAN))}


def a_workflow_that_is_gone(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    epic_id = forger.entity("workflow", f"run_id = '{run_id}'")
    for table in ("entities", "journal", "tasks"):
        forger.sql("workflow", f"DELETE FROM {table} WHERE entity_id = ?", epic_id)
    return {("together", "agreement", run_id, forger.version("orchestrator", run_id))}


def a_workflow_that_is_not_done(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    epic_id = forger.entity("workflow", f"run_id = '{run_id}'")
    forger.journal("workflow", epic_id, lambda rows: rows.pop())
    return {("together", "agreement", run_id, forger.version("orchestrator", run_id))}


def a_pipeline_that_says_otherwise(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    pipeline_id = forger.entity("pipeline", f"run_id = '{run_id}'")
    forger.journal("pipeline", pipeline_id, lambda rows: rows[-1].update(event="PIPELINE_ABORTED", target="ABORTED"))
    return {("together", "agreement", run_id, forger.version("orchestrator", run_id))}


def a_pipeline_that_goes_on(forger: Forger) -> Planted:
    run_id = _completed_run(forger)
    pipeline_id = forger.entity("pipeline", f"run_id = '{run_id}'")
    forger.journal("pipeline", pipeline_id, lambda rows: rows.pop())
    version = forger.version("pipeline", pipeline_id)
    return {
        ("pipeline", "waiting", pipeline_id, version),
        ("together", "agreement", pipeline_id, version),
        ("together", "agreement", run_id, forger.version("orchestrator", run_id)),
    }


def a_pipeline_in_another_trace(forger: Forger) -> Planted:
    pipeline_id = forger.entity("pipeline", "run_id <> ''")
    other = f"00-{'ab' * 16}-{'cd' * 8}-01"
    forger.sql("pipeline", "UPDATE entities SET traceparent = ? WHERE entity_id = ?", other, pipeline_id)
    return {("together", "trace", pipeline_id, forger.version("pipeline", pipeline_id))}


def spans_without_a_root(forger: Forger) -> Planted:
    pipeline_id = forger.entity("pipeline", "run_id <> ''")
    forger.sql("pipeline", "UPDATE entities SET run_id = 'run_that_never_was' WHERE entity_id = ?", pipeline_id)
    return {("together", "trace", pipeline_id, forger.version("pipeline", pipeline_id))}


PLANTED: tuple[Callable[[Forger], Planted], ...] = (
    an_attempt_too_many, a_completion_under_an_older_epoch, a_lease_that_lives_on, an_author_who_judges,
    a_principal_that_judges_its_own_work, an_author_whose_review_was_taken, an_author_whose_verification_was_taken,
    a_verifier_that_nobody_granted, a_verifier_that_is_not_named, a_lost_lease,
    a_move_outside_the_table, an_acceptance_without_evidence, an_acceptance_without_work, a_run_that_waits_for_nobody,
    an_effect_that_nobody_asked_for, an_effect_that_comes_twice, an_effect_that_was_forgotten,
    a_barrier_that_was_not_open, a_member_that_counts_twice, a_retry_too_many, a_forced_stage_that_passes,
    a_barrier_without_a_timer, a_stage_row_that_was_edited, a_stage_row_that_is_gone, a_stage_row_that_cannot_be_read,
    a_stage_that_nobody_planned, a_shape_that_was_edited, a_report_that_was_edited, a_report_that_is_gone,
    a_task_before_its_dependency, a_plan_completed_with_work_left, a_task_row_that_was_edited, a_workflow_that_is_gone,
    a_workflow_that_is_not_done, a_pipeline_that_says_otherwise, a_pipeline_that_goes_on, a_pipeline_in_another_trace,
    spans_without_a_root,
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
async def test_the_auditor_finds(plant: Callable[[Forger], Planted], sound: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(sound, data)
    expected = plant(Forger(data))
    assert await _found(data) == expected
