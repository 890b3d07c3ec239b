"""The tables of states: complete, closed, and obeyed by every command in every state."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest

from pointsman.api.workflow.v1 import model_pb2
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.constraints import CheckResult, Constraint, ConstraintSet
from pointsman.services.workflow.domain.enums import (
    ConstraintType,
    ExecutionMode,
    PauseCause,
    TaskStatus,
    WorkflowMode,
    WorkflowStatus,
)
from pointsman.services.workflow.domain.transitions import (
    COMMANDS_ALLOWED,
    LEADS_TO,
    TASK_TRANSITIONS,
    TRANSITIONS,
    allows,
    check_transition,
    successors,
    task_allows,
)
from tests.unit.workflow.flow import ID, Flow, in_status, planned, spec, with_task_in

W = WorkflowStatus
T = TaskStatus

SEED = {
    (W.IDLE, W.PLANNED), (W.PLANNED, W.RUNNING), (W.PLANNED, W.IDLE), (W.RUNNING, W.PAUSED), (W.RUNNING, W.BLOCKED),
    (W.RUNNING, W.FAILED), (W.RUNNING, W.COMPLETED), (W.PAUSED, W.RUNNING), (W.BLOCKED, W.RUNNING),
    (W.FAILED, W.RUNNING),
}  # fmt: skip

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HARD = ConstraintSet(hard=(Constraint("C1", "holds", ConstraintType.HARD),))

COMMANDS: dict[str, Callable[[], object]] = {
    "UpsertPlan": lambda: commands.UpsertPlan(ID, tasks=planned(spec("z"))),
    "Execute": lambda: commands.Execute(ID),
    "NextTasks": lambda: commands.NextTasks(ID),
    "ReleaseOwner": lambda: commands.ReleaseTask(ID, release_owner=True),
    "Pause": lambda: commands.PauseWorkflow(ID),
    "Resume": lambda: commands.Resume(ID),
    "Unblock": lambda: commands.Unblock(ID, "design_spec"),
    "CancelPlan": lambda: commands.CancelPlan(ID),
    "MergeConstraints": lambda: commands.MergeConstraints(ID, (HARD,)),
    "RecordUsage": lambda: commands.RecordUsage(ID, characters=8),
    "Audit": lambda: commands.RunAudit(ID),
    "ReleaseTask": lambda: commands.ReleaseTask(ID, ("b",)),
    "CompleteTask": lambda: commands.CompleteTask(ID, "b"),
    "FailTask": lambda: commands.FailTask(ID, "b", "broken"),
    "SettleTasks": lambda: commands.SettleTasks(ID, ("b",)),
    "RetryTask": lambda: commands.RetryTask(ID, "a"),
    "SkipTask": lambda: commands.SkipTask(ID, "c", "not needed"),
    "RecordVerification": lambda: commands.RecordVerification(ID, (CheckResult("C1", True, "", NOW),)),
    "WaiveConstraint": lambda: commands.WaiveConstraint(ID, "C1", "known", "ann"),
}


def test_there_are_eleven_transitions_and_they_are_the_seeds() -> None:
    assert len(TRANSITIONS) == 11
    assert {(row.source, row.target) for row in TRANSITIONS} == SEED


@pytest.mark.parametrize("source", W)
@pytest.mark.parametrize("target", W)
def test_every_other_pair_is_refused_naming_both_ends_and_what_is_allowed(source: W, target: W) -> None:
    assert allows(source, target) is ((source, target) in SEED)
    if (source, target) in SEED:
        check_transition(ID, source, target)
        return
    with pytest.raises(Refusal) as caught:
        check_transition(ID, source, target)
    assert source in caught.value.message
    assert target in caught.value.message
    assert caught.value.metadata["allowed"] == ",".join(successors(source))


def test_only_completed_has_no_successor_and_every_state_is_reached_and_can_end() -> None:
    assert [status for status in W if not successors(status)] == [W.COMPLETED]
    reached = {W.IDLE}
    while new := {row.target for row in TRANSITIONS if row.source in reached} - reached:
        reached |= new
    assert reached == set(W)
    ending = {W.COMPLETED}
    while new := {row.source for row in TRANSITIONS if row.target in ending} - ending:
        ending |= new
    assert ending == set(W)


def test_completed_and_skipped_tasks_have_no_successor() -> None:
    assert {status for status in T if not any(task_allows(status, target) for target in T)} == {T.COMPLETED, T.SKIPPED}
    assert len({(row.source, row.target) for row in TASK_TRANSITIONS}) == len(TASK_TRANSITIONS) == 9


@pytest.mark.parametrize("name", COMMANDS_ALLOWED)
@pytest.mark.parametrize("status", W)
def test_each_command_is_taken_exactly_in_the_states_of_its_row(name: str, status: W) -> None:
    flow = _prepared(in_status(status), name)
    before = len(flow.journal)
    if status in COMMANDS_ALLOWED[name]:
        _do_or_miss_a_task(flow, COMMANDS[name]())
        return
    refusal = flow.refused(COMMANDS[name]())
    assert refusal.reason is Reason.STATE_FORBIDS
    assert refusal.metadata["state"] == status
    assert name not in refusal.metadata["allowed"].split(",")
    assert f"is {status}" in refusal.message
    assert all(target in refusal.message for target in successors(status))
    assert LEADS_TO.get(name, "") in refusal.message
    assert len(flow.journal) == before


def _do_or_miss_a_task(flow: Flow, command: object) -> None:
    try:
        flow.do(command)
    except Refusal as missed:
        assert missed.metadata["kind"] != "workflow"  # noqa: PT017 - the state took the command, its task did not


def _prepared(flow: Flow, name: str) -> Flow:
    if name in ("RecordVerification", "WaiveConstraint") and flow.status is not W.COMPLETED:
        flow.do(commands.MergeConstraints(ID, (HARD,)))
    if name == "UpsertPlan" and flow.status is W.FAILED:
        flow.do(commands.ReleaseTask(ID, every=True))
    return flow


def test_each_row_of_commands_is_tested() -> None:
    assert set(COMMANDS) == set(COMMANDS_ALLOWED)


TASK_COMMANDS: dict[str, tuple[Callable[[], object], set[T]]] = {
    "release": (lambda: commands.ReleaseTask(ID, ("t",)), {T.IN_PROGRESS}),
    "complete": (lambda: commands.CompleteTask(ID, "t"), {T.IN_PROGRESS}),
    "fail": (lambda: commands.FailTask(ID, "t", "broken"), {T.IN_PROGRESS}),
    "settle completed": (lambda: commands.SettleTasks(ID, ("t",)), {T.IN_PROGRESS}),
    "settle rejected": (lambda: commands.SettleTasks(ID, (), (commands.Rejected("t", "no"),)), {T.IN_PROGRESS}),
    "settle retried": (lambda: commands.SettleTasks(ID, (), (commands.Rejected("t", "no", True),)), {T.IN_PROGRESS}),
    "retry": (lambda: commands.RetryTask(ID, "t"), {T.FAILED}),
    "skip": (lambda: commands.SkipTask(ID, "t", "why not"), {T.PENDING, T.BLOCKED, T.FAILED}),
}


@pytest.mark.parametrize("name", TASK_COMMANDS)
@pytest.mark.parametrize("status", T)
def test_each_task_command_is_taken_exactly_in_its_task_states(name: str, status: T) -> None:
    command, allowed = TASK_COMMANDS[name]
    flow = with_task_in(status)
    if status in allowed:
        flow.do(command())
        assert task_allows(status, flow.task("t").status)
        return
    refusal = flow.refused(command())
    assert refusal.reason is Reason.STATE_FORBIDS
    assert refusal.metadata["kind"] == "task"
    assert refusal.metadata["state"] == status
    assert flow.task("t").status is status


@pytest.mark.parametrize("make", [make for make, _ in TASK_COMMANDS.values()])
def test_an_unknown_task_is_not_found(make: Callable[[], object]) -> None:
    flow = Flow()
    flow.plan(spec("a"))
    flow.execute()
    assert flow.refused(make()).reason is Reason.NOT_FOUND


@pytest.mark.parametrize("name", sorted(set(COMMANDS_ALLOWED) - {"UpsertPlan"}))
def test_a_workflow_that_is_not_there_is_not_found(name: str) -> None:
    assert Flow().refused(COMMANDS[name]()).reason is Reason.NOT_FOUND


@pytest.mark.parametrize(
    ("domain", "wire"),
    [
        (W, model_pb2.WorkflowStatus),
        (T, model_pb2.TaskStatus),
        (ExecutionMode, model_pb2.ExecutionMode),
        (WorkflowMode, model_pb2.WorkflowMode),
        (PauseCause, model_pb2.PauseCause),
    ],
)
def test_the_wire_has_the_same_names_as_the_domain(domain: type[StrEnum], wire: Any) -> None:
    prefix = re.sub(r"(?<!^)([A-Z])", r"_\1", wire.DESCRIPTOR.name).upper() + "_"
    names = {name.removeprefix(prefix) for name in wire.keys()}  # noqa: SIM118 - no mapping
    assert names - {"UNSPECIFIED"} == {member.name for member in domain}
