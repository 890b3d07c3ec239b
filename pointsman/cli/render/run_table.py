"""The list of runs for people: one line each, with who has to act."""

from collections.abc import Iterator, Sequence

from pointsman.api.orchestrator.v1.run_pb2 import (
    RUN_STATE_CANCELLED,
    RUN_STATE_COMPLETE,
    RUN_STATE_FAILED,
    WAIT_KIND_AGENT,
    WAIT_KIND_BUDGET,
    WAIT_KIND_PERSON,
    Run,
)
from pointsman.cli.render.run_progress import grade_text, state_name

HEADER = f"{'RUN':<30}  {'SUBMITTED':<16}  {'STATE':<16}  {'GRADE':<8}  {'ACTS NEXT':<16}  WHAT"
_ENDED = (RUN_STATE_COMPLETE, RUN_STATE_FAILED, RUN_STATE_CANCELLED)


def run_table(runs: Sequence[Run]) -> Iterator[str]:
    """A header and a line per run, or one line that says how to start."""
    if not runs:
        yield "no runs; `pointsman run` starts one"
        return
    yield HEADER
    for run in runs:
        intent = " ".join(run.intent.split())[:60]
        submitted = f"{run.created_at.ToDatetime():%Y-%m-%d %H:%M}"
        yield f"{run.id:<30}  {submitted:<16}  {state_name(run):<16}  {grade_text(run.grade).lstrip(', ') or '-':<8}  {acts_next(run):<16}  {intent}"


def acts_next(run: Run) -> str:
    """Who has to act before the run goes on."""
    if run.state in _ENDED:
        return "-"
    if not run.HasField("waiting_for"):
        return "pointsman"
    waiting = run.waiting_for
    if waiting.kind in (WAIT_KIND_PERSON, WAIT_KIND_BUDGET):
        return "you"
    return f"agent: {waiting.who}" if waiting.kind == WAIT_KIND_AGENT else waiting.who or "pointsman"
