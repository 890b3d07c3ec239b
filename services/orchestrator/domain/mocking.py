"""How the mock agents behave: one outcome per role, changed while they run."""

from enum import StrEnum


class MockRole(StrEnum):
    """A role that a mock can play."""

    EXECUTOR = "executor"
    REVIEWER = "reviewer"
    SEARCHER = "searcher"


class MockOutcome(StrEnum):
    """What a mock agent does with an assignment."""

    SUCCESS = "success"
    FAILURE = "failure"
    SLOW = "slow"
    SILENT = "silent"
    MALFORMED = "malformed"
    NO_EVIDENCE = "no_evidence"
    FORGED_VERDICT = "forged_verdict"


class MockPolicy:
    """The outcomes of now, and which roles are played by mocks."""

    def __init__(self, outcomes: dict[MockRole, MockOutcome], mocked: frozenset[MockRole]) -> None:
        self.outcomes = outcomes
        self.mocked = mocked

    def set(self, roles: tuple[MockRole, ...], outcome: MockOutcome) -> None:
        """From now on, these roles do this."""
        self.outcomes.update(dict.fromkeys(roles, outcome))
