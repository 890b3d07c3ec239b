"""What can be set about the orchestrator. Environment: POINTSMAN_ORCHESTRATOR_<NAME>."""

from typing import Annotated

from msgspec import Meta

from pointsman.services.chassis.core.settings import Settings
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockPolicy, MockRole


class OrchestratorSettings(Settings, prefix="POINTSMAN_ORCHESTRATOR_"):
    """One frozen set for the whole process."""

    lease_seconds: Annotated[
        float, Meta(gt=0, description="How long an agent may be silent before its lease runs out.")
    ] = 60.0
    present_seconds: Annotated[
        float, Meta(gt=0, description="How long after its last poll an agent counts as present.")
    ] = 120.0
    max_leases: Annotated[
        int, Meta(ge=0, description="Leases at the same time, in all projects; 0 means no limit.")
    ] = 0
    max_project_leases: Annotated[
        int, Meta(ge=0, description="Leases of a project at the same time; 0 means no limit.")
    ] = 0
    max_principal_leases: Annotated[
        int,
        Meta(
            ge=0,
            description="Leases of a principal in a project at the same time, before Poll is turned away; 0 means no limit.",
        ),
    ] = 1000
    sweep_seconds: Annotated[float, Meta(gt=0, description="How often exhausted leases are looked for.")] = 1.0
    retention_days: Annotated[float, Meta(gt=0, description="How long ended runs stay stored.")] = 30.0
    max_live_runs: Annotated[int, Meta(ge=1, description="Live runs of a project before Submit is turned away.")] = (
        10_000
    )
    max_schedules: Annotated[
        int, Meta(ge=0, description="Schedules of a project before CreateSchedule is turned away.")
    ] = 100
    assignments: Annotated[int, Meta(ge=1, description="Default budget: assignments of a run.")] = 500
    transitions: Annotated[int, Meta(ge=10, description="Default budget: transitions of a run.")] = 10_000
    fan_out: Annotated[int, Meta(ge=1, le=64, description="Default budget: assignments of a run at the same time.")] = (
        64
    )
    wall_clock_seconds: Annotated[float, Meta(gt=0, description="Default budget: a run's time.")] = 7 * 24 * 3600.0
    max_artifact_bytes: Annotated[
        int,
        Meta(
            ge=1,
            description="Largest artifact, in bytes; a project has no more than these on their way at once, all together twice as many.",
        ),
    ] = 256 * 1024 * 1024
    max_project_artifact_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="Stored artifacts of a project, in bytes, before new ones are turned away; 0 means no limit.",
        ),
    ] = 16 * 1024 * 1024 * 1024
    max_principal_artifact_bytes: Annotated[
        int, Meta(ge=0, description="The same for what one principal has put into a project; 0 means no limit.")
    ] = 8 * 1024 * 1024 * 1024


MOCK_SWITCHES = {
    "full_mock_mode": "FULL_MOCK_MODE",
    "runtime_debug_mode": "RUNTIME_DEBUG_MODE",
    "executor_loop": "MOCK_EXECUTOR_LOOP",
    "reviewer_loop": "MOCK_REVIEWER_LOOP",
    "searcher_loop": "MOCK_SEARCHER_LOOP",
    "executor_outcome": "MOCK_EXECUTOR_OUTCOME",
    "reviewer_outcome": "MOCK_REVIEWER_OUTCOME",
    "searcher_outcome": "MOCK_SEARCHER_OUTCOME",
}
MOCK_VARIABLES = {field: (f"POINTSMAN_{name}", f"FINGER_{name}") for field, name in MOCK_SWITCHES.items()}


class MockSettings(Settings, aliases=MOCK_VARIABLES):
    """The mock switches; each is also read under its older FINGER_ name."""

    full_mock_mode: Annotated[bool, Meta(description="Run the mock agents.")] = False
    runtime_debug_mode: Annotated[bool, Meta(description="Offer the mock policy without mocks.")] = False
    executor_loop: Annotated[bool, Meta(description="0: a real executor is expected.")] = True
    reviewer_loop: Annotated[bool, Meta(description="0: a real reviewer is expected.")] = True
    searcher_loop: Annotated[bool, Meta(description="0: a real researcher is expected.")] = True
    executor_outcome: Annotated[MockOutcome, Meta(description="How the executor starts.")] = MockOutcome.SUCCESS
    reviewer_outcome: Annotated[MockOutcome, Meta(description="How the reviewer starts.")] = MockOutcome.SUCCESS
    searcher_outcome: Annotated[MockOutcome, Meta(description="How the researcher starts.")] = MockOutcome.SUCCESS

    @property
    def offers_policy(self) -> bool:
        """Whether MockService answers."""
        return self.full_mock_mode or self.runtime_debug_mode

    def policy(self) -> MockPolicy:
        """The mocks' behaviour at the start."""
        outcomes = {
            MockRole.EXECUTOR: self.executor_outcome,
            MockRole.REVIEWER: self.reviewer_outcome,
            MockRole.SEARCHER: self.searcher_outcome,
        }
        loops = {
            MockRole.EXECUTOR: self.executor_loop,
            MockRole.REVIEWER: self.reviewer_loop,
            MockRole.SEARCHER: self.searcher_loop,
        }
        mocked = frozenset(role for role, on in loops.items() if on and self.full_mock_mode)
        return MockPolicy(outcomes, mocked)
