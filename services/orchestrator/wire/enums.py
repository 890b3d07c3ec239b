"""Enums of the run on the wire and those of its peers."""

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import proof_pb2 as proof
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import landing_pb2 as landing_pb
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1 import schedule_pb2 as schedule_pb
from pointsman.api.pipeline.v1 import route_pb2 as route
from pointsman.api.pipeline.v1 import state_pb2 as pipeline_state
from pointsman.api.router.v1 import outcome_pb2 as outcome
from pointsman.api.workflow.v1 import model_pb2 as workflow
from pointsman.services.chassis.rpc.enum_map import EnumMap
from pointsman.services.orchestrator.domain import enums
from pointsman.services.orchestrator.domain.landing import enums as landing
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockRole
from pointsman.services.orchestrator.domain.schedules import enums as schedules

STATE = EnumMap(runs.RunState, enums.State)
EXECUTION_MODE = EnumMap(runs.ExecutionMode, enums.ExecutionMode)
ATTENTION = EnumMap(runs.Attention, enums.Attention)
WAIT_KIND = EnumMap(runs.WaitKind, enums.Wait)
QUESTION_KIND = EnumMap(runs.QuestionKind, enums.Question)
PERMISSION_STATE = EnumMap(agent.PermissionState, enums.PermissionState)
ANSWER_KIND = EnumMap(runs.AnswerKind, enums.Reply)
PURPOSE = EnumMap(assignments.Purpose, enums.Purpose)
CAPABILITY = EnumMap(assignments.Capability, enums.Capability)
SEVERITY = EnumMap(handoff.Severity, enums.Severity)
GRADE = EnumMap(proof.Grade, enums.Grade)
REVIEW_VERDICT = EnumMap(handoff.ReviewVerdict, enums.Verdict)
EVIDENCE_KIND = EnumMap(handoff.EvidenceKind, enums.EvidenceKind)
MOCK_ROLE = EnumMap(mock.MockRole, MockRole)
MOCK_OUTCOME = EnumMap(mock.MockOutcome, MockOutcome)
WORKFLOW_STATUS = EnumMap(workflow.WorkflowStatus, enums.WorkflowStatus, unspecified=enums.WorkflowStatus.UNKNOWN)
WORKFLOW_MODE = EnumMap(workflow.ExecutionMode, enums.ExecutionMode)
PIPELINE_STATE = EnumMap(pipeline_state.PipelineState, enums.PipelineStatus)
ROUTE_SEVERITY = EnumMap(route.Severity, enums.Severity)
DEBATE_VERDICT = EnumMap(outcome.Verdict, enums.DebateVerdict)
ENTRY_STATE = EnumMap(landing_pb.EntryState, landing.EntryState)
ENTRY_REPLY = EnumMap(landing_pb.EntryReply, landing.EntryReply)
LANDING_WAY = EnumMap(landing_pb.LandingWay, landing.Way)
SCHEDULE_STATE = EnumMap(schedule_pb.ScheduleState, schedules.ScheduleState)
MISSED_POLICY = EnumMap(schedule_pb.MissedPolicy, schedules.MissedPolicy)
OVERLAP_POLICY = EnumMap(schedule_pb.OverlapPolicy, schedules.OverlapPolicy)
