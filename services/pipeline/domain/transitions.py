"""The transition table: which event may lead from which status of a pipeline to which."""

from collections.abc import Mapping

from pointsman.services.pipeline.domain.enums import LIVE, EventName, PipelineStatus

_ACTIVE, _ESCALATED = PipelineStatus.ACTIVE, PipelineStatus.ESCALATED
_STAY = frozenset({(_ACTIVE, _ACTIVE), (_ESCALATED, _ESCALATED)})
_EITHER = frozenset((source, target) for source in LIVE for target in LIVE)
ENDED: frozenset[str] = frozenset(status for status in PipelineStatus if status not in LIVE)

TRANSITIONS: Mapping[EventName, frozenset[tuple[str, str]]] = {
    EventName.PIPELINE_STARTED: frozenset({("", _ACTIVE)}),
    EventName.PIPELINE_IMPORTED: frozenset(("", status) for status in PipelineStatus),
    EventName.STAGE_DELEGATED: frozenset({(_ACTIVE, _ACTIVE)}),
    EventName.STAGE_COMPLETED: _STAY,
    EventName.STAGE_FAILED: _STAY,
    EventName.STAGE_RETRY: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.STAGE_SKIPPED: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.STAGE_ESCALATED: frozenset({(_ACTIVE, _ESCALATED), (_ESCALATED, _ESCALATED)}),
    EventName.STAGE_RESTARTED: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.ROUTE_FALLBACK: _STAY,
    EventName.ROUTE_CORRECTED: _STAY,
    EventName.RETRY_EXHAUSTED: _STAY,
    EventName.CONVERGENCE_STALL: _STAY,
    EventName.REFLECTION_WRITTEN: _STAY,
    EventName.CONTEXT_PUT: _STAY,
    EventName.BARRIER_CREATED: _STAY,
    EventName.BARRIER_WAITING: _STAY,
    EventName.BARRIER_RESOLVED: _STAY,
    EventName.BARRIER_TIMED_OUT: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.AGENT_CRASH: _STAY,
    EventName.COMPLETION_IGNORED: frozenset((status, status) for status in PipelineStatus),
    EventName.PIPELINE_COMPLETED: frozenset(
        {(_ACTIVE, PipelineStatus.COMPLETED), (_ACTIVE, PipelineStatus.COMPLETED_WITH_FAILURES)}
    ),
    EventName.PIPELINE_ABORTED: frozenset((status, PipelineStatus.ABORTED) for status in LIVE),
    EventName.PIPELINE_CANCELLED: frozenset((status, PipelineStatus.CANCELLED) for status in LIVE),
    EventName.PIPELINE_CLEANED: frozenset((status, status) for status in ENDED),
}
"""Every allowed transition; an ended pipeline is only cleaned up, or ignores late completions."""
