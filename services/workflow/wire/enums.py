"""Maps enums of the domain to the wire and back, by name; the wire adds a prefix."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pointsman.api.workflow.v1 import constraints_pb2, model_pb2
from pointsman.services.workflow.domain.enums import (
    Category,
    ConstraintPhase,
    ConstraintType,
    ExecutionMode,
    PauseCause,
    SourceModel,
    TaskStatus,
    Verification,
    WorkflowMode,
    WorkflowStatus,
)

Member = TypeVar("Member", bound=StrEnum)


class EnumMap(Generic[Member]):
    """Maps one enum of the domain to the wire and back."""

    def __init__(self, wire: Any, prefix: str, domain: type[Member]) -> None:
        self._to_wire = {member: wire.Value(f"{prefix}_{member.name}") for member in domain}
        self._to_domain = {number: member for member, number in self._to_wire.items()}

    def to_wire(self, member: Member) -> Any:
        """The wire's number of a member."""
        return self._to_wire[member]

    def to_domain(self, number: int) -> Member | None:
        """The member of a number; None for UNSPECIFIED."""
        return self._to_domain.get(number)

    def all_to_domain(self, numbers: Iterable[int]) -> tuple[Member, ...]:
        """The members of numbers, without UNSPECIFIED."""
        return tuple(self._to_domain[number] for number in numbers if number in self._to_domain)

    def or_default(self, number: int, default: Member) -> Member:
        """The member of a number; the default for UNSPECIFIED."""
        return self._to_domain.get(number, default)


WORKFLOW_STATUS = EnumMap(model_pb2.WorkflowStatus, "WORKFLOW_STATUS", WorkflowStatus)
TASK_STATUS = EnumMap(model_pb2.TaskStatus, "TASK_STATUS", TaskStatus)
EXECUTION_MODE = EnumMap(model_pb2.ExecutionMode, "EXECUTION_MODE", ExecutionMode)
WORKFLOW_MODE = EnumMap(model_pb2.WorkflowMode, "WORKFLOW_MODE", WorkflowMode)
PAUSE_CAUSE = EnumMap(model_pb2.PauseCause, "PAUSE_CAUSE", PauseCause)
CONSTRAINT_TYPE = EnumMap(constraints_pb2.ConstraintType, "CONSTRAINT_TYPE", ConstraintType)
CATEGORY = EnumMap(constraints_pb2.ConstraintCategory, "CONSTRAINT_CATEGORY", Category)
SOURCE_MODEL = EnumMap(constraints_pb2.SourceModel, "SOURCE_MODEL", SourceModel)
CONSTRAINT_PHASE = EnumMap(constraints_pb2.ConstraintPhase, "CONSTRAINT_PHASE", ConstraintPhase)
VERIFICATION = EnumMap(constraints_pb2.VerificationStatus, "VERIFICATION_STATUS", Verification)
