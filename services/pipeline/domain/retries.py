"""Whether a failed stage is retried, and the trend of its failures."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from pointsman.services.pipeline.domain.enums import SEVERITY_RANK, Severity, StopAction, StopReason, Verdict

MAX_HISTORY = 25


class RetryRound(msgspec.Struct, frozen=True):
    """One failed round of a stage."""

    round: int
    severity: Severity
    at: datetime


class StopDecision(msgspec.Struct, frozen=True):
    """Whether retries stop, why, and the observed trend."""

    stop: bool
    reason: StopReason
    action: StopAction
    note: str = ""


_PASSED = StopDecision(stop=True, reason=StopReason.QUALITY_GATE_PASSED, action=StopAction.NEXT)


def should_stop(
    verdict: Verdict, retry_count: int, max_retries: int, history: Sequence[RetryRound] = ()
) -> StopDecision:
    """Only PASS and exhausted retries stop; a stall or trend is only reported."""
    if verdict is Verdict.PASS:
        return _PASSED
    if retry_count >= max_retries:
        note = f"{retry_count} of {max_retries} retries are used up"
        return StopDecision(stop=True, reason=StopReason.MAX_RETRIES_EXHAUSTED, action=StopAction.FORCE_NEXT, note=note)
    reason, note = _observed(history)
    return StopDecision(stop=False, reason=reason, action=StopAction.RETRY, note=note)


def _observed(history: Sequence[RetryRound]) -> tuple[StopReason, str]:
    if len(history) < 2:
        return StopReason.RETRIES_LEFT, ""
    before, last = history[-2].severity, history[-1].severity
    if before is last:
        return StopReason.CONVERGENCE_STALL_OBSERVED, f"two rounds in a row failed with {last}"
    if SEVERITY_RANK[last] < SEVERITY_RANK[before]:
        return StopReason.SEVERITY_IMPROVING, f"better: {before} became {last}"
    return StopReason.SEVERITY_WORSENING, f"worse: {before} became {last}"
