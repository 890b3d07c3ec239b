"""What a role of a worker shows to the control plane: its credential, the account that it is billed to, and what it is given in log lines."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.credentials.folder import CredentialRole

CREDENTIAL_ROLES: Mapping[assignments.Capability.ValueType, CredentialRole] = {
    assignments.CAPABILITY_PLAN: CredentialRole.PLANNER,
    assignments.CAPABILITY_RESEARCH: CredentialRole.PLANNER,
    assignments.CAPABILITY_SURVEY: CredentialRole.PLANNER,
    assignments.CAPABILITY_DESIGN: CredentialRole.PLANNER,
    assignments.CAPABILITY_CODE: CredentialRole.CODER,
    assignments.CAPABILITY_RESOLVE: CredentialRole.CODER,
    assignments.CAPABILITY_REVIEW: CredentialRole.REVIEWER,
    assignments.CAPABILITY_DEBATE: CredentialRole.REVIEWER,
    assignments.CAPABILITY_VERIFY: CredentialRole.VERIFIER,
}
"""The credential that an agent with this capability shows."""


@dataclass(frozen=True, slots=True)
class Billing:
    """The account at the model's provider that a role uses, and those for which it stands in while they rest."""

    account: str = ""
    instead_of: tuple[str, ...] = ()


NOT_BILLED = Billing()


def describe(assignment: assignments.Assignment) -> str:
    """An assignment for log lines."""
    purpose = assignments.Purpose.Name(assignment.purpose).removeprefix("PURPOSE_")
    where = "/".join(part for part in (assignment.run_id, assignment.task_id, assignment.stage) if part)
    return f"{purpose} {where} (attempt {assignment.attempt})"
