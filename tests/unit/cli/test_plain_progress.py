"""`run` in plain words: the plan, who works on what, what was proven or refused and why, what waits for a person."""

import pytest
from google.protobuf.message import Message

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.handoff.v1 import work_pb2 as findings
from pointsman.api.handoff.v1.proof_pb2 import GRADE_ON_WORD
from pointsman.api.journal.v1 import run_events_pb2 as journal
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.cli.render.progress_lines import progress_lines
from pointsman.cli.render.run_progress import PlainView
from pointsman.cli.render.transition_lines import event_lines, shortened


def said(event: str, message: Message, *states: str) -> list[str]:
    source, target = states or ("CODER_EXEC", "CODER_EXEC")
    return [line.text for line in progress_lines(row(event, message, source, target))]


def row(event: str, message: Message, source: str, target: str) -> Transition:
    transition = Transition(event=event, from_state=source, to_state=target)
    getattr(transition.run, event).CopyFrom(message)
    return transition


def test_the_plan_is_a_list_of_tasks() -> None:
    tasks = [journal.TaskOutline(task_id="T1", name="first"), journal.TaskOutline(task_id="T2", name="second")]
    plan = journal.PlanOutline(tasks=tasks, confidence=0.9)
    assert said("planned", journal.Planned(plan=plan)) == ["plan of 2 tasks (90% sure)", "  T1  first", "  T2  second"]
    built_in = journal.PlanOutline(tasks=tasks[:1], built_in=True)
    assert said("planned", journal.Planned(plan=built_in))[0] == "plan of 1 task (built in)"


def test_a_refusal_says_its_cause_however_long_it_is() -> None:
    noise = "noise\n" * 200
    reason = f"it ended with exit code 1\n{noise}AssertionError: 5 != 6\n{noise}FAILED (failures=1)"
    judged = journal.TaskJudged(task_id="T1", judge="verifier", accepted=False, reason=reason)
    assert said("task_judged", judged) == [
        "T1 rejected by the verifier: it ended with exit code 1 … AssertionError: 5 != 6 FAILED (failures=1)"
    ]


def test_what_the_verifier_ran_is_said_criterion_by_criterion() -> None:
    verdicts = [findings.CriterionFinding(criterion_id="V1", passed=True), findings.CriterionFinding(criterion_id="V2")]
    task = findings.TaskFinding(task_id="T1", criteria=verdicts, conflicts=["a.py"])
    assert said("wave_verified", journal.WaveVerified(tasks=[task])) == [
        "T1: V1 passed, V2 failed",
        "T1: conflict in a.py",
    ]


def test_what_is_accepted_says_what_it_is_worth() -> None:
    judged = journal.TaskJudged(task_id="T1", judge="verifier", accepted=True, grade=GRADE_ON_WORD)
    assert said("task_judged", judged) == ["T1 accepted by the verifier, ON WORD"]


def test_what_waits_for_a_person_and_what_stays_open_is_said() -> None:
    asked = journal.Asked(question=journal.QuestionOutline(text="Is it accepted?"))
    assert said("asked", asked) == ["waits for you: Is it accepted?"]
    risks = journal.RisksNoted(risks=[journal.RiskOutline(statement="nobody looked")])
    assert said("risks_noted", risks) == ["risk: nobody looked"]


def test_the_states_of_the_machine_are_left_out_but_for_the_end() -> None:
    moved = journal.Transitioned(reason="because")
    assert said("transitioned", moved, "SCHEDULE", "DISPATCH") == []
    assert said("transitioned", moved, "REVIEW_ACCEPT", "FAILED") == ["FAILED: because"]


def test_each_agent_is_named_once_for_each_attempt_that_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    item = assignments.Assignment(
        id="a1", task_id="T1", stage="DEV", capability=assignments.CAPABILITY_CODE, agent_id="box-coder", attempt=1,
        state=assignments.ASSIGNMENT_STATE_LEASED,
    )  # fmt: skip
    view = PlainView()
    for attempt in (1, 1, 2):
        item.attempt = attempt
        view.run(Run(), [item])
    printed = [line[10:] for line in capsys.readouterr().out.splitlines()]
    assert printed == ["T1: box-coder writes the code", "T1: box-coder writes the code, attempt 2"]


def test_a_long_reason_ends_behind_a_word() -> None:
    cut_off = shortened("word " * 100)
    assert cut_off.endswith("word …")
    assert len(cut_off) <= 300
    assert shortened("short") == "short"


@pytest.mark.parametrize(
    ("event", "message", "text"),
    [
        (
            "budget_held",
            journal.BudgetHeld(
                assignment=journal.AssignmentOutline(task_id="T2", stage="DEV"), what="cost", by_running=True
            ),
            "T2 DEV waits: the work that runs holds the rest of the budget (cost)",
        ),
        ("budget_held", journal.BudgetHeld(assignment=journal.AssignmentOutline(task_id="T2"), what="cost"), ""),
        (
            "account_paused",
            journal.AccountPaused(
                agent_id="a", account="team", until="2026-01-01T00:00:00Z", kind="QUOTA", reason="429"
            ),
            "team rests until 2026-01-01T00:00:00Z (quota: 429); no attempt of a counts",
        ),
        ("work_taken_up", journal.WorkTakenUp(agent_id="b", account="own", rested="team"), "b goes on: team rests"),
        ("work_taken_up", journal.WorkTakenUp(agent_id="a", account="t", rested="t"), "a goes on: the limit is over"),
    ],
)
def test_limits_are_said_alike_while_a_run_is_watched_and_in_its_journal(
    event: str, message: Message, text: str
) -> None:
    assert said(event, message) == [text] * bool(text)
    journalled = [line.text for line in event_lines(row(event, message, "CODER_EXEC", "CODER_EXEC"))]
    assert [line for line in journalled if line == f"  {text}"] == [f"  {text}"] * bool(text)
