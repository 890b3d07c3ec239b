"""Where a run of each mock behaviour ends: the scenarios play it, the docs print it."""

from collections.abc import Mapping

from pointsman.services.orchestrator.domain.enums import Question, State
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockRole

End = Question | None
"""The question with which a run brings a person in; none where it completes."""
_MISBEHAVED = (Question.LOW_CONFIDENCE, Question.PIPELINE_ESCALATED, Question.REPLAN_LIMIT)
_ENDS: Mapping[MockOutcome, tuple[End, End, End]] = {
    MockOutcome.SUCCESS: (None, None, None),
    MockOutcome.SLOW: (None, None, None),
    MockOutcome.FAILURE: _MISBEHAVED,
    MockOutcome.SILENT: _MISBEHAVED,
    MockOutcome.MALFORMED: _MISBEHAVED,
    MockOutcome.NO_EVIDENCE: (Question.LOW_CONFIDENCE, Question.ACCEPTANCE, Question.REPLAN_LIMIT),
    MockOutcome.FORGED_VERDICT: _MISBEHAVED,
}
ROLES = (MockRole.EXECUTOR, MockRole.REVIEWER, MockRole.SEARCHER)
ENDS: Mapping[tuple[MockRole, MockOutcome], End] = {
    (role, outcome): end for outcome, ends in _ENDS.items() for role, end in zip(ROLES, ends, strict=True)
}


def state_of(end: End) -> State:
    """The state in which a run with this end is then."""
    if end is None:
        return State.COMPLETE
    return {Question.ACCEPTANCE: State.REVIEW_ACCEPT, Question.PIPELINE_ESCALATED: State.CODER_EXEC}.get(
        end, State.ASK_SWITCH
    )


def table() -> str:
    """The table as the docs have it."""
    lines = [f"| all others succeed, and | {' | '.join(f'the {role}' for role in ROLES)} |", "|---|---|---|---|"]
    for outcome in _ENDS:
        ends = [ENDS[role, outcome] for role in ROLES]
        cells = [f"{state_of(end)}, asks `{end}`" if end else str(state_of(end)) for end in ends]
        lines.append(f"| `{outcome}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
