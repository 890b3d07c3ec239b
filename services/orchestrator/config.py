"""What can be set about the orchestrator. Environment: POINTSMAN_ORCHESTRATOR_<NAME>."""

from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockPolicy, MockRole


class OrchestratorSettings(BaseSettings):
    """One frozen set for the whole process."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_ORCHESTRATOR_", frozen=True, extra="forbid")

    lease_seconds: float = Field(
        default=60.0, gt=0, description="How long an agent may be silent before its lease runs out."
    )
    present_seconds: float = Field(
        default=120.0, gt=0, description="How long after its last poll an agent counts as present."
    )
    max_leases: int = Field(default=0, ge=0, description="Leases at the same time, in all projects; 0 means no limit.")
    max_project_leases: int = Field(
        default=0, ge=0, description="Leases of a project at the same time; 0 means no limit."
    )
    max_principal_leases: int = Field(
        default=1000,
        ge=0,
        description="Leases of a principal in a project at the same time, before Poll is turned away; 0 means no limit.",
    )
    sweep_seconds: float = Field(default=1.0, gt=0, description="How often exhausted leases are looked for.")
    retention_days: float = Field(default=30.0, gt=0, description="How long ended runs are kept.")
    max_live_runs: int = Field(default=10_000, ge=1, description="Live runs of a project before Submit is turned away.")
    assignments: int = Field(default=500, ge=1, description="Default budget: assignments of a run.")
    transitions: int = Field(default=10_000, ge=10, description="Default budget: transitions of a run.")
    fan_out: int = Field(default=64, ge=1, le=64, description="Default budget: assignments of a run at the same time.")
    wall_clock_seconds: float = Field(default=7 * 24 * 3600.0, gt=0, description="Default budget: a run's time.")
    max_artifact_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1,
        description="Largest artifact, in bytes; a project has no more than these on their way at once, all together twice as many.",
    )
    max_project_artifact_bytes: int = Field(
        default=16 * 1024 * 1024 * 1024,
        ge=0,
        description="Stored artifacts of a project, in bytes, before new ones are turned away; 0 means no limit.",
    )
    max_principal_artifact_bytes: int = Field(
        default=8 * 1024 * 1024 * 1024,
        ge=0,
        description="The same for what one principal has put into a project; 0 means no limit.",
    )


def _names(name: str) -> AliasChoices:
    return AliasChoices(f"POINTSMAN_{name}", f"FINGER_{name}")


class MockSettings(BaseSettings):
    """The mock switches; each is also read under its older FINGER_ name."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    full_mock_mode: bool = Field(
        default=False, validation_alias=_names("FULL_MOCK_MODE"), description="Run the mock agents."
    )
    runtime_debug_mode: bool = Field(
        default=False, validation_alias=_names("RUNTIME_DEBUG_MODE"), description="Offer the mock policy without mocks."
    )
    executor_loop: bool = Field(
        default=True, validation_alias=_names("MOCK_EXECUTOR_LOOP"), description="0: a real executor is expected."
    )
    reviewer_loop: bool = Field(
        default=True, validation_alias=_names("MOCK_REVIEWER_LOOP"), description="0: a real reviewer is expected."
    )
    searcher_loop: bool = Field(
        default=True, validation_alias=_names("MOCK_SEARCHER_LOOP"), description="0: a real researcher is expected."
    )
    executor_outcome: MockOutcome = Field(
        default=MockOutcome.SUCCESS,
        validation_alias=_names("MOCK_EXECUTOR_OUTCOME"),
        description="How the executor starts.",
    )
    reviewer_outcome: MockOutcome = Field(
        default=MockOutcome.SUCCESS,
        validation_alias=_names("MOCK_REVIEWER_OUTCOME"),
        description="How the reviewer starts.",
    )
    searcher_outcome: MockOutcome = Field(
        default=MockOutcome.SUCCESS,
        validation_alias=_names("MOCK_SEARCHER_OUTCOME"),
        description="How the researcher starts.",
    )

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
