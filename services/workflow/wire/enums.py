"""Maps enums of the domain to the wire and back, by name; the wire adds a prefix."""

from pointsman.api.workflow.v1 import constraints_pb2, model_pb2
from pointsman.services.chassis.rpc.enum_map import EnumMap
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

WORKFLOW_STATUS = EnumMap(model_pb2.WorkflowStatus, WorkflowStatus)
TASK_STATUS = EnumMap(model_pb2.TaskStatus, TaskStatus)
EXECUTION_MODE = EnumMap(model_pb2.ExecutionMode, ExecutionMode)
WORKFLOW_MODE = EnumMap(model_pb2.WorkflowMode, WorkflowMode)
PAUSE_CAUSE = EnumMap(model_pb2.PauseCause, PauseCause)
CONSTRAINT_TYPE = EnumMap(constraints_pb2.ConstraintType, ConstraintType)
CATEGORY = EnumMap(constraints_pb2.ConstraintCategory, Category)
SOURCE_MODEL = EnumMap(constraints_pb2.SourceModel, SourceModel)
CONSTRAINT_PHASE = EnumMap(constraints_pb2.ConstraintPhase, ConstraintPhase)
VERIFICATION = EnumMap(constraints_pb2.VerificationStatus, Verification)
