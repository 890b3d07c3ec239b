"""Maps enums of the domain to the wire and back."""

from pointsman.api.router.v1 import decision_pb2, outcome_pb2, policy_pb2, thinking_pb2
from pointsman.services.chassis.rpc.enum_map import EnumMap
from pointsman.services.router.domain import debate_verdict, enums, outcomes, thinking
from pointsman.services.router.domain.rule_document import RuleEffect

MODE = EnumMap(decision_pb2.Mode, enums.Mode)
CONFIDENCE = EnumMap(decision_pb2.Confidence, enums.Confidence)
ROUTE_TARGET = EnumMap(decision_pb2.RouteTarget, enums.RouteTarget)
DEBATE = EnumMap(decision_pb2.Debate, enums.Debate)
STAKES = EnumMap(decision_pb2.Stakes, enums.Stakes)
DEBATE_BYPASS = EnumMap(decision_pb2.DebateBypass, enums.Bypass)
TRIGGER_KIND = EnumMap(decision_pb2.TriggerKind, enums.TriggerKind)
PLANNING_TRIGGER = EnumMap(decision_pb2.PlanningTrigger, enums.PlanningTrigger)
RULE_EFFECT = EnumMap(policy_pb2.RuleEffect, RuleEffect)
DOUBT = EnumMap(policy_pb2.Doubt, enums.Doubt)
OUTCOME = EnumMap(outcome_pb2.Outcome, outcomes.Outcome)
REACTION = EnumMap(outcome_pb2.Reaction, outcomes.Reaction)
REACTION_CAUSE = EnumMap(outcome_pb2.ReactionCause, outcomes.Cause)
DEBATE_KIND = EnumMap(outcome_pb2.DebateKind, debate_verdict.DebateKind)
SEVERITY = EnumMap(outcome_pb2.Severity, debate_verdict.Severity, unspecified=debate_verdict.Severity.NONE)
VERDICT = EnumMap(outcome_pb2.Verdict, debate_verdict.Verdict)
ARTIFACT_STATE = EnumMap(thinking_pb2.ArtifactState, thinking.FileState, unspecified=thinking.FileState.ABSENT)
ENVELOPE_STATUS = EnumMap(thinking_pb2.EnvelopeStatus, thinking.Status, unspecified=thinking.Status.UNKNOWN)
NEED = EnumMap(thinking_pb2.Need, thinking.Need)
THINKING_ERROR_CODE = EnumMap(thinking_pb2.ThinkingErrorCode, thinking.ErrorCode)
THINKING_ROUTE = EnumMap(thinking_pb2.ThinkingRoute, thinking.Route)
