"""Constraints: merged within limits with nothing lost silently, verified by records, waived by name."""

from datetime import UTC, datetime

import pytest

from pointsman.services.chassis.core.errors import Reason
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.constraints import CheckResult, Constraint, ConstraintSet, OpenQuestion, merge
from pointsman.services.workflow.domain.enums import (
    ConstraintType,
    PauseCause,
    SourceModel,
    Verification,
    WorkflowStatus,
)
from tests.unit.workflow.flow import ID, Flow, running, spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def hard(own_id: str, description: str = "", source: SourceModel = SourceModel.CODEX) -> Constraint:
    return Constraint(own_id, description or f"{own_id} holds", ConstraintType.HARD, source_model=source)


def soft(own_id: str, description: str = "") -> Constraint:
    return Constraint(own_id, description or f"{own_id} would be good", ConstraintType.SOFT)


def hards(*constraints: Constraint) -> ConstraintSet:
    return ConstraintSet(hard=constraints)


def checked(own_id: str, *, passed: bool) -> CheckResult:
    return CheckResult(own_id, passed, "ran it", NOW)


def test_hard_constraints_are_united_and_the_same_one_counts_once() -> None:
    merged = merge((hards(hard("C1"), hard("C2")), hards(hard("C2"), hard("C3"))))
    assert [one.constraint_id for one in merged.merged.hard] == ["C1", "C2", "C3"]
    assert merged.dropped.empty


def test_the_same_id_with_another_description_is_kept_under_its_source() -> None:
    merged = merge((hards(hard("C1", "a")), hards(hard("C1", "b", SourceModel.GEMINI)), hards(hard("C1", "c"))))
    assert [(one.constraint_id, one.description) for one in merged.merged.hard] == [
        ("C1", "a"),
        ("C1-gemini", "b"),
        ("C1-codex", "c"),
    ]
    twice = merge((merged.merged, hards(hard("C1", "b", SourceModel.GEMINI), hard("C1", "c"))))
    assert twice.merged.hard == merged.merged.hard


def test_what_a_second_model_says_of_a_renamed_constraint_counts_once_in_a_later_merge_too() -> None:
    said = (hards(hard("C1", "a")), hards(hard("C1", "b", SourceModel.GEMINI)), hards(hard("C1", "b")))
    assert [one.constraint_id for one in merge(said).merged.hard] == ["C1", "C1-gemini"]
    first = merge(said[:2]).merged
    assert merge((first, said[2])).merged == first


def test_an_id_that_only_begins_like_a_renamed_one_is_another_constraint() -> None:
    held = hards(hard("C1", "a"), hard("C1-codex-cache", "b"))
    assert [one.constraint_id for one in merge((held, hards(hard("C1", "b")))).merged.hard] == [
        "C1",
        "C1-codex-cache",
        "C1-codex",
    ]


def test_the_same_source_may_give_one_id_to_three_things() -> None:
    merged = merge((hards(hard("C1", "a"), hard("C1", "b"), hard("C1", "c")),))
    assert [one.constraint_id for one in merged.merged.hard] == ["C1", "C1-codex", "C1-codex-2"]
    assert merge((merged.merged, hards(hard("C1", "c")))).merged.hard == merged.merged.hard


def test_limits_are_seven_seven_five_seven_and_what_they_cut_off_comes_back() -> None:
    wide = ConstraintSet(
        tuple(hard(f"H{n}") for n in range(9)),
        tuple(soft(f"S{n}") for n in range(9)),
        tuple(OpenQuestion(f"q{n}?", "codex") for n in range(9)),
        tuple(f"criterion {n}" for n in range(9)),
    )
    merged = merge((wide,))
    kept, dropped = merged.merged, merged.dropped
    assert [len(part) for part in (kept.hard, kept.soft, kept.open_questions, kept.success_criteria)] == [7, 7, 5, 7]
    assert [one.constraint_id for one in dropped.hard] == ["H7", "H8"]
    assert [one.constraint_id for one in dropped.soft] == ["S7", "S8"]
    assert [one.text for one in dropped.open_questions] == ["q5?", "q6?", "q7?", "q8?"]
    assert dropped.success_criteria == ("criterion 7", "criterion 8")


def test_soft_constraints_are_ranked_by_frequency_and_ties_by_appearance() -> None:
    sets = (
        ConstraintSet(soft=(soft("E"), soft("B"), soft("C"))),
        ConstraintSet(soft=(soft("C"), soft("D"))),
        ConstraintSet(soft=(soft("B"), soft("X", "C would be good"))),
    )
    assert [one.constraint_id for one in merge(sets).merged.soft] == ["C", "B", "E", "D"]


def test_success_criteria_are_what_every_set_holds() -> None:
    sets = tuple(ConstraintSet(success_criteria=part) for part in (("a", "b", "c"), ("c", "b"), ("b", "d", "c")))
    merged = merge(sets)
    assert merged.merged.success_criteria == ("b", "c")
    assert merged.dropped.success_criteria == ("a", "d")
    assert merge(sets[::-1]).merged.success_criteria == ("b", "c")
    assert merge((sets[1], sets[0], sets[0])).merged.success_criteria == ("c", "b")
    assert merge((*sets, ConstraintSet())).merged.success_criteria == ()


def test_open_questions_keep_their_source() -> None:
    sets = tuple(ConstraintSet(open_questions=(OpenQuestion("why?", source),)) for source in ("codex", "gemini"))
    assert merge(sets).merged.open_questions == (OpenQuestion("why?", "codex"),)


def test_what_a_workflow_holds_already_is_the_first_set_of_the_next_merge() -> None:
    flow = constrained(hards(hard("C1")))
    flow.do(commands.RecordVerification(ID, (checked("C1", passed=True),)))
    answer = flow.do(commands.MergeConstraints(ID, (hards(hard("C1"), hard("C2")),)))
    assert [(one.constraint_id, one.verification) for one in answer.constraints.hard] == [
        ("C1", Verification.PASSED),
        ("C2", Verification.UNVERIFIED),
    ]


def test_a_dropped_hard_constraint_is_in_the_journal() -> None:
    flow = constrained(hards(*(hard(f"H{n}") for n in range(8))))
    assert flow.journal[-1][0].data.dropped.hard[0].constraint_id == "H7"


def constrained(held: ConstraintSet) -> Flow:
    flow = running(spec("a"))
    flow.do(commands.MergeConstraints(ID, (held,)))
    return flow


def done(flow: Flow) -> Flow:
    flow.complete(*flow.take())
    return flow


def test_a_workflow_with_unverified_hard_constraints_pauses_naming_them() -> None:
    flow = done(constrained(hards(hard("C1"), hard("C2"))))
    assert flow.pause_cause == PauseCause.CONSTRAINTS
    assert flow.state.header.pause is not None
    assert flow.state.header.pause.constraint_ids == ("C1", "C2")


def test_it_completes_when_the_last_one_is_verified() -> None:
    flow = done(constrained(hards(hard("C1"), hard("C2"))))
    answer = flow.do(commands.RecordVerification(ID, (checked("C1", passed=True),)))
    assert answer.unmet == ("C2",)
    flow.do(commands.RecordVerification(ID, (checked("C2", passed=True),)))
    assert flow.last_events(2) == [("reopened", "paused", "running"), ("completed", "running", "completed")]


def test_a_failed_check_is_not_passed_and_a_later_failure_takes_a_pass_back() -> None:
    flow = constrained(hards(hard("C1")))
    flow.do(commands.RecordVerification(ID, (checked("C1", passed=True),)))
    unmet = [flow.state.header.unmet]
    flow.do(commands.RecordVerification(ID, (checked("C1", passed=False),)))
    assert [*unmet, flow.state.header.unmet] == [(), ("C1",)]
    assert done(flow).pause_cause == PauseCause.CONSTRAINTS


def test_every_result_of_a_record_counts_and_of_two_about_one_constraint_the_last() -> None:
    flow = constrained(hards(hard("C1"), hard("C2")))
    results = (checked("C1", passed=True), checked("C2", passed=True), checked("C2", passed=False))
    assert flow.do(commands.RecordVerification(ID, results)).unmet == ("C2",)


def test_resuming_without_verification_pauses_again() -> None:
    flow = done(constrained(hards(hard("C1"))))
    flow.do(commands.Resume(ID))
    assert flow.pause_cause == PauseCause.CONSTRAINTS


def test_a_person_waives_by_name_with_a_reason_and_that_is_a_risk() -> None:
    flow = done(constrained(hards(hard("C1"))))
    flow.do(commands.WaiveConstraint(ID, "C1", "the API is frozen", "ann"))
    assert flow.status is WorkflowStatus.COMPLETED
    risk = flow.state.details.risks[0]
    assert (risk.severity, risk.subject_id) == ("high", "C1")
    assert "ann" in risk.description
    assert "the API is frozen" in risk.description


def test_a_waiver_stays_when_a_check_fails_and_yields_to_one_that_passes() -> None:
    flow = constrained(hards(hard("C1")))
    flow.do(commands.WaiveConstraint(ID, "C1", "known", "ann"))
    flow.do(commands.RecordVerification(ID, (checked("C1", passed=False),)))
    assert flow.state.header.unmet == ()
    flow.do(commands.RecordVerification(ID, (checked("C1", passed=True),)))
    assert flow.state.details.constraints.hard[0].verification is Verification.PASSED


def test_soft_constraints_stop_nothing_and_cannot_be_waived() -> None:
    flow = constrained(ConstraintSet(soft=(soft("S1"),)))
    assert flow.refused(commands.WaiveConstraint(ID, "S1", "no", "ann")).reason is Reason.NOT_FOUND
    flow.do(commands.RecordVerification(ID, (checked("S1", passed=False),)))
    assert done(flow).status is WorkflowStatus.COMPLETED


@pytest.mark.parametrize(
    "command",
    [
        commands.RecordVerification(ID, (checked("C9", passed=True),)),
        commands.WaiveConstraint(ID, "C9", "no", "ann"),
    ],
)
def test_an_unknown_constraint_is_not_found(command: object) -> None:
    refusal = constrained(hards(hard("C1"))).refused(command)
    assert refusal.reason is Reason.NOT_FOUND
    assert refusal.metadata["kind"] == "constraint"
