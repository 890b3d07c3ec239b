"""The enums of the wire and of the domain have the same names; these tables follow from that."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pointsman.api.workflow.v1 import constraints_pb2, model_pb2
from pointsman.services.workflow.domain.constraints import (
    Category,
    ConstraintPhase,
    ConstraintType,
    SourceModel,
    Verification,
)
from pointsman.services.workflow.domain.enums import (
    ExecutionMode,
    PauseCause,
    TaskStatus,
    WorkflowMode,
    WorkflowStatus,
)

Word = TypeVar("Word", bound=StrEnum)


class Names(Generic[Word]):
    """One enum in both of its forms."""

    def __init__(self, wire: Any, prefix: str, domain: type[Word]) -> None:
        self._to_wire = {word: wire.Value(f"{prefix}_{word.name}") for word in domain}
        self._to_domain = {number: word for word, number in self._to_wire.items()}

    def to_wire(self, word: Word) -> Any:
        """The wire's number of a domain word."""
        return self._to_wire[word]

    def to_domain(self, number: int) -> Word | None:
        """The domain's word, None for UNSPECIFIED."""
        return self._to_domain.get(number)

    def all_to_domain(self, numbers: Iterable[int]) -> tuple[Word, ...]:
        """The domain's words, without UNSPECIFIED."""
        return tuple(self._to_domain[number] for number in numbers if number in self._to_domain)

    def or_default(self, number: int, default: Word) -> Word:
        """The domain's word, the default for UNSPECIFIED."""
        return self._to_domain.get(number, default)


WORKFLOW_STATUS = Names(model_pb2.WorkflowStatus, "WORKFLOW_STATUS", WorkflowStatus)
TASK_STATUS = Names(model_pb2.TaskStatus, "TASK_STATUS", TaskStatus)
EXECUTION_MODE = Names(model_pb2.ExecutionMode, "EXECUTION_MODE", ExecutionMode)
WORKFLOW_MODE = Names(model_pb2.WorkflowMode, "WORKFLOW_MODE", WorkflowMode)
PAUSE_CAUSE = Names(model_pb2.PauseCause, "PAUSE_CAUSE", PauseCause)
CONSTRAINT_TYPE = Names(constraints_pb2.ConstraintType, "CONSTRAINT_TYPE", ConstraintType)
CATEGORY = Names(constraints_pb2.ConstraintCategory, "CONSTRAINT_CATEGORY", Category)
SOURCE_MODEL = Names(constraints_pb2.SourceModel, "SOURCE_MODEL", SourceModel)
CONSTRAINT_PHASE = Names(constraints_pb2.ConstraintPhase, "CONSTRAINT_PHASE", ConstraintPhase)
VERIFICATION = Names(constraints_pb2.VerificationStatus, "VERIFICATION_STATUS", Verification)
