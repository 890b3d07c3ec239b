"""The straight way through the machine."""

from pointsman.services.orchestrator.domain.enums import Purpose, State
from tests.unit.orchestrator.driver import ALL, Driver


def test_a_run_with_mock_agents_goes_straight_to_complete() -> None:
    driver = Driver().submit().settle().work_until()
    assert driver.run.status is State.COMPLETE
    assert driver.moves == [
        "submitted", "auto", "no_resumable", "user_input", "intake_ok", "bd_upsert_done", "skip_plan_review",
        "observe_target_defined", "result_arrived", "artifacts_loaded", "enough_info", "design_ready",
        "handoff_bundle_ready", "resource_ready", "dispatch_success", "claims_evidence_arrived", "pass",
    ]  # fmt: skip


def test_a_run_with_all_agents_asks_each_of_them() -> None:
    driver = Driver(ALL, repository_id="r", base_commit="b" * 40, debate=True).submit().settle().work_until()
    assert driver.run.status is State.COMPLETE
    purposes = [event.data.assignment.purpose for event in driver.journal if event.name == "assigned"]
    assert purposes == [
        Purpose.PLAN, Purpose.DEBATE, Purpose.RESEARCH, Purpose.DESIGN, Purpose.STAGE, Purpose.STAGE, Purpose.STAGE,
        Purpose.REVIEW, Purpose.VERIFY,
    ]  # fmt: skip
    assert driver.run.accepted_commit == "a" * 40
