"""Schedule, queue, dispatch, pipelines, leases and budgets."""

from datetime import timedelta

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.calls.pipelines import PipelineSeen, capability_of
from pointsman.services.orchestrator.domain.enums import (
    Call,
    Capability,
    PipelineStatus,
    Purpose,
    Question,
    Reply,
    State,
    Verdict,
    Wait,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.model import Budget, Delegation, Usage
from pointsman.services.orchestrator.domain.waiting import waiting_for
from tests.unit.orchestrator.driver import ALL, NOBODY, Driver, plan, work


def planned(*task_ids: str, **order: object) -> Driver:
    driver = Driver(ALL, **order).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(*task_ids)))
    return driver


def executing(*task_ids: str, **order: object) -> Driver:
    return planned(*task_ids, **order).work_until(Purpose.STAGE)


def kind_asked(driver: Driver) -> Question | None:
    return driver.run.question.kind if driver.run.question else None


def test_the_workflow_is_executed_once() -> None:
    driver = executing("T1")
    driver.work_until(Purpose.REVIEW)
    driver.hand_in(driver.open(Purpose.REVIEW)[0], commands.ReviewResult(Verdict.RETRY))
    calls = [event.data.call for event in driver.journal if event.name == "peer_called"]
    assert calls.count(Call.EXECUTE) == 1
    assert calls.count(Call.CLAIM_WAVE) == 2


def test_a_wave_starts_one_pipeline_per_claimed_task() -> None:
    driver = executing("T1", "T2")
    assert {task.pipeline_id for task in driver.run.tasks.values()} == {"run_1/T1/1", "run_1/T2/1"}
    assert [item.stage for item in driver.open()] == ["DEV", "DEV"]


def test_a_retry_is_a_new_pipeline_that_gets_the_earlier_reflections() -> None:
    driver = executing("T1").work_until(Purpose.REVIEW)
    starts: list[str] = []
    driver.hand_in(driver.open()[0], commands.ReviewResult(Verdict.RETRY, feedback=("no",)))
    starts = [task.pipeline_id for task in driver.run.tasks.values()]
    assert starts == ["run_1/T1/2"]
    assert driver.run.tasks["T1"].rejections == ("no",)


@pytest.mark.parametrize(
    ("status", "question", "reply"),
    [
        (WorkflowStatus.PAUSED, Question.PAUSED, Reply.RESUME),
        (WorkflowStatus.BLOCKED, Question.BLOCKED, Reply.UNBLOCK),
        (WorkflowStatus.FAILED, Question.BLOCKED, Reply.SKIP),
    ],
)
def test_paused_and_blocked_work_queues_and_the_answer_is_forwarded(
    status: WorkflowStatus, question: Question, reply: Reply
) -> None:
    driver = planned("T1")
    driver.workflow = status
    driver.work_until(Purpose.STAGE)
    assert driver.is_in(State.QUEUE)
    assert kind_asked(driver) is question
    driver.reply(reply, task_id="T1")
    assert driver.is_in(State.CODER_EXEC)


def test_a_queued_run_looks_again_by_a_timer_that_backs_off_to_thirty_seconds() -> None:
    driver = planned("T1")
    driver.workflow = WorkflowStatus.BLOCKED
    driver.work_until(Purpose.STAGE)
    waits = []
    for _ in range(7):
        before = driver.now
        waits.append((driver.timers["queue"] - before).total_seconds())
        driver.fire("queue")
    assert waits == [2, 4, 8, 16, 30, 30, 30]
    driver.workflow = WorkflowStatus.RUNNING
    assert driver.fire("queue").run.status is State.CODER_EXEC


def test_nothing_to_claim_goes_from_dispatch_to_the_queue() -> None:
    driver = planned("T1")
    driver.pending = []
    driver.work_until(Purpose.STAGE)
    assert driver.is_in(State.QUEUE)
    assert driver.moves[-1] == "resource_busy"


def test_a_completed_workflow_has_an_empty_wave_and_passes() -> None:
    driver = planned("T1")
    driver.pending = []
    driver.workflow = WorkflowStatus.COMPLETED
    assert driver.work_until().run.status is State.COMPLETE


def test_a_refused_pipeline_is_a_failed_dispatch_and_counts_as_a_re_plan() -> None:
    driver = planned("T1").work_until(Purpose.DESIGN)
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    done = commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", commands.DesignResult("{}"))
    driver.send(done)
    while driver.effects[0].kind != Call.START_PIPELINE:
        driver._deliver(driver.effects.pop(0))
    driver.refuse_next("unknown template").settle()
    assert "dispatch_failed" in driver.moves
    assert driver.run.replans == 1
    assert [effect.kind for effect in driver.told] == [Call.CANCEL_PIPELINE, Call.RELEASE]


def test_without_a_reviewer_only_the_writing_stage_runs_and_that_is_a_risk() -> None:
    driver = Driver(frozenset({Capability.CODE})).submit().settle()
    driver.hand_in(driver.open()[0], commands.StageResult("PASS", work=work("T1")), "coder")
    assert driver.run.tasks["T1"].pipeline_status is PipelineStatus.COMPLETED
    assert [risk.key for risk in driver.run.risks] == ["no-reviewer"]
    assert kind_asked(driver) is Question.ACCEPTANCE


def test_without_a_coder_the_run_waits_for_an_agent() -> None:
    driver = Driver(NOBODY).submit().settle()
    waiting = waiting_for(driver.run)
    assert waiting is not None
    assert (waiting.kind, waiting.who) == (Wait.AGENT, "code")


def test_a_judging_stage_is_never_given_to_the_author() -> None:
    driver = executing("T1")
    driver.hand_in(driver.open()[0], commands.StageResult("PASS", work=work("T1", "ada")), "ada")
    assert {item.excluded_agent for item in driver.open()} == {"ada"}


def test_stages_have_their_capabilities() -> None:
    stages = ["PLAN", "ARCH", "DESIGN", "DEV", "DOCS", "TEST:write", "REVIEW", "TEST", "QA", "E2E", "TEST:verify"]
    capabilities = [str(capability_of(stage, can_be_proven=False)) for stage in stages]
    assert capabilities == [
        "PLAN", "DESIGN", "DESIGN", "CODE", "CODE", "CODE", "REVIEW", "REVIEW", "REVIEW", "REVIEW", "REVIEW",
    ]  # fmt: skip
    proven = {stage for stage in stages if capability_of(stage, can_be_proven=True) is Capability.VERIFY}
    assert proven == {"TEST", "TEST:verify"}


def test_a_lost_coder_aborts_the_attempt_and_never_passes() -> None:
    driver = executing("T1")
    driver.lose(driver.open()[0])
    assert "reject_or_retry" in driver.moves
    reason = "the attempt was aborted: DEV: no agent finished (the lease ran out)"
    assert driver.run.tasks["T1"].rejections == (reason,)


def test_work_that_failed_too_often_is_asked_about_by_what_failed() -> None:
    driver = executing("T1")
    while driver.run.question is None:
        driver.settle()
        driver.lose(driver.open()[0])
    text = driver.run.question.text
    assert text.startswith(
        "The work failed too often to be tried again by itself: the attempt was aborted: DEV: no agent"
    )
    assert text.endswith("What should be different?")


def test_a_lost_judge_counts_as_a_crash_of_its_stage() -> None:
    driver = executing("T1")
    driver.hand_in(driver.open()[0], commands.StageResult("PASS", work=work("T1")), "coder")
    assignment = driver.open()[0]
    for _ in range(3):
        epoch = driver.lease(assignment.assignment_id)
    driver.send(commands.ExpireAssignment("run_1", assignment.assignment_id, epoch))
    (effect,) = driver.effects
    assert (effect.data.verdict, effect.data.route, effect.data.lost) == ("", "", True)


def test_a_lost_lease_stands_in_the_journal_and_changes_nothing() -> None:
    driver = executing("T1")
    (assignment,) = driver.open()
    before = driver.run
    driver.send(commands.LoseLease("run_1", assignment.assignment_id, "coder", 1))
    driver.send(commands.LoseLease("run_1", "run_1.a99", "coder", 1))
    assert [event.data for event in driver.journal if event.name == "lease_lost"] == [
        events.LeaseLost(assignment.assignment_id, "coder", 1)
    ]
    assert driver.run.assignments == before.assignments


def test_a_failed_attempt_is_offered_again_and_the_third_is_the_last() -> None:
    driver = executing("T1")
    assignment = driver.open()[0]
    for number, reason in enumerate(reasons := ("no model", "no disk", "no network")):
        (offered,) = driver.open()
        assert offered.assignment_id == assignment.assignment_id
        assert offered.setbacks == reasons[:number]
        epoch = driver.lease(assignment.assignment_id)
        driver.send(commands.FailAssignment("run_1", assignment.assignment_id, epoch, "agent", reason))
    assert assignment not in driver.open()
    assert [event.name for event in driver.journal].count("assignment_retried") == 2


def test_a_permanent_failure_is_not_offered_again() -> None:
    driver = executing("T1")
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    driver.send(commands.FailAssignment("run_1", assignment.assignment_id, epoch, "agent", "no", permanent=True))
    assert assignment not in driver.open()


def test_a_completion_under_an_older_epoch_is_refused() -> None:
    driver = executing("T1")
    assignment = driver.open()[0]
    old = driver.lease(assignment.assignment_id, "first")
    driver.lease(assignment.assignment_id, "second")
    late = commands.StageResult("PASS", work=work("T1"))
    for epoch, agent_id in ((old, "first"), (old, "second"), (old + 1, "first")):
        with pytest.raises(Refusal) as caught:
            driver.send(commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, agent_id, late))
        assert caught.value.reason is Reason.LEASE_LOST


def test_a_completion_of_an_assignment_that_nobody_leased_is_refused() -> None:
    driver = executing("T1")
    result = commands.StageResult("PASS", work=work("T1"))
    with pytest.raises(Refusal):
        driver.send(commands.CompleteAssignment("run_1", driver.open()[0].assignment_id, 0, "agent", result))


@pytest.mark.parametrize(
    ("result", "field"),
    [
        (commands.ResearchResult(0.9, "{}"), "stage"),
        (commands.StageResult("PASS"), "stage.coder_result"),
        (commands.MalformedResult("stage.route.verdict", "must be PASS or FAIL"), "stage.route.verdict"),
    ],
)
def test_a_malformed_result_counts_as_a_failed_attempt_and_names_the_field(result: commands.Result, field: str) -> None:
    driver = executing("T1")
    answer = driver.hand_in(driver.open()[0], result)
    assert (answer.accepted, answer.field) == (False, field)
    assert driver.journal[-1].name == "assignment_retried"


def test_an_escalated_pipeline_asks_a_person_and_the_answer_is_forwarded() -> None:
    driver = executing("T1")
    call_id = next(iter([*driver.run.calls, ""]))
    driver.hand_in(driver.open()[0], commands.StageResult("PASS", work=work("T1")), "coder")
    driver.fire("pipelines")
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    stage = commands.StageResult("PASS")
    driver.send(commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", stage))
    call_id = driver.effects.pop(0).data.call_id
    driver.send(commands.CallAnswered("run_1", PipelineSeen(call_id, "T1", PipelineStatus.ESCALATED)))
    assert kind_asked(driver) is Question.PIPELINE_ESCALATED
    with pytest.raises(Refusal):
        driver.reply(Reply.SKIP_STAGE)
    driver.reply(Reply.RESTART_STAGE, stage="REVIEW")
    assert [event.data.call for event in driver.journal if event.name == "peer_called"][-1] is Call.FORWARD_STAGE_ANSWER


def test_the_safety_pass_finds_delegations_that_nobody_told_of_and_offers_none_twice() -> None:
    driver = executing("T1")
    before = len(driver.open())
    driver.send(commands.TimerFired("run_1", "pipelines"))
    call_id = driver.effects.pop(0).data.call_id
    known, new = (Delegation(f"d-{stage}", stage, "{}", "") for stage in ("DEV", "REVIEW"))
    driver.send(commands.CallAnswered("run_1", PipelineSeen(call_id, "T1", PipelineStatus.ACTIVE, (known, new))))
    assert [item.stage for item in driver.open()] == ["DEV", "REVIEW"]
    assert len(driver.open()) == before + 1


def test_a_pipeline_that_is_gone_is_a_failed_attempt() -> None:
    driver = executing("T1")
    driver.send(commands.TimerFired("run_1", "pipelines"))
    driver.refuse_next("no such pipeline").settle()
    assert "reject_or_retry" in driver.moves


def test_an_exhausted_budget_stops_dispatch_names_what_ran_out_and_raising_it_goes_on() -> None:
    driver = Driver().with_budget(assignments=1).submit().settle()
    driver.work_until(Purpose.STAGE)
    assert driver.open() == []
    waiting = waiting_for(driver.run)
    assert waiting is not None
    assert (waiting.kind, waiting.who) == (Wait.BUDGET, "assignments")
    state = driver.run.status
    driver.reply(Reply.RAISE, budget=Budget(100, 0, 0, 0, 0, 0.0))
    assert driver.run.budget.assignments == 100
    assert driver.run.status is state
    assert driver.work_until().run.status is State.COMPLETE


def test_raising_too_little_asks_again() -> None:
    driver = Driver().with_budget(tokens=10).submit().settle()
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    driver.send(
        commands.CompleteAssignment(
            "run_1", assignment.assignment_id, epoch, "agent", commands.ResearchResult(0.9, "{}"), Usage(tokens=50)
        )
    )
    held = driver.settle().run.held
    for too_little in (20, 30, 40):
        driver.reply(Reply.RAISE, budget=Budget(0, 0, 0, too_little, 0, 0.0))
    assert [item.assignment_id for item in driver.run.held] == [item.assignment_id for item in held]
    assert kind_asked(driver) is Question.BUDGET
    driver.reply(Reply.RAISE, budget=Budget(0, 0, 0, 500, 0, 0.0))
    assert driver.work_until().run.status is State.COMPLETE


def test_raise_without_a_budget_is_refused_with_the_field() -> None:
    driver = Driver().with_budget(assignments=0).submit().settle()
    with pytest.raises(Refusal) as caught:
        driver.reply(Reply.RAISE)
    assert caught.value.metadata["field"] == "budget"


def test_the_wall_clock_asks_a_person_when_the_time_is_over() -> None:
    driver = Driver().with_budget(wall_clock_seconds=60.0).submit().settle()
    driver.fire("wall_clock")
    assert kind_asked(driver) is Question.BUDGET
    driver.reply(Reply.RAISE, budget=Budget(0, 0, 0, 0, 0, 3600.0))
    assert driver.timers["wall_clock"] - driver.now > timedelta(minutes=50)


def test_the_transition_limit_is_a_fatal_error() -> None:
    driver = Driver().with_budget(transitions=20).submit().settle().work_until()
    assert driver.is_in(State.FAILED)
    assert "20 transitions" in driver.run.end_reason


def test_who_lost_the_lease_is_told_so_also_when_the_transition_limit_is_reached() -> None:
    so_far = Driver().submit().settle().run.spent.transitions
    driver = Driver().with_budget(transitions=so_far).submit().settle()
    assignment = driver.open()[0]
    lost = driver.lease(assignment.assignment_id, "slow")
    driver.lease(assignment.assignment_id, "quick")
    with pytest.raises(Refusal) as caught:
        driver.send(
            commands.CompleteAssignment(
                "run_1", assignment.assignment_id, lost, "slow", commands.ResearchResult(0.9, "{}")
            )
        )
    assert caught.value.reason is Reason.LEASE_LOST
    assert not driver.is_in(State.FAILED)


def test_the_requirement_cannot_change_while_a_wave_that_passed_is_being_recorded() -> None:
    driver = Driver().submit().settle().work_until(Purpose.REVIEW)
    review = driver.open(Purpose.REVIEW)[0]
    epoch = driver.lease(review.assignment_id)
    result = driver.good_result(review)
    driver.send(commands.CompleteAssignment("run_1", review.assignment_id, epoch, "agent", result))
    assert Call.SETTLE_WAVE in driver.run.calls.values()
    with pytest.raises(Refusal) as caught:
        driver.send(commands.ChangeRequirement("run_1", "and fast"))
    assert caught.value.reason is Reason.LOST_RACE
    assert driver.settle().is_in(State.COMPLETE)


def test_no_more_tasks_are_claimed_than_may_run_at_the_same_time() -> None:
    driver = Driver(ALL).with_budget(fan_out=2).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", "T2", "T3")))
    driver.work_until(Purpose.STAGE)
    assert driver.run.wave == ("T1", "T2")


def test_usage_is_added_up() -> None:
    driver = Driver().submit().settle()
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    usage = Usage(tokens=7, cost_micros=3)
    result = commands.ResearchResult(0.9, "{}")
    driver.send(commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", result, usage))
    assert (driver.run.spent.tokens, driver.run.spent.cost_micros) == (7, 3)


def test_usage_is_charged_to_the_task_as_well() -> None:
    driver = executing("T1")
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    usage = Usage(tokens=7, cost_micros=3)
    failed = commands.FailAssignment("run_1", assignment.assignment_id, epoch, "agent", "cannot", usage=usage)
    driver.send(failed)
    assert driver.run.tasks["T1"].spent == usage
    assert driver.run.spent.tokens == 7
