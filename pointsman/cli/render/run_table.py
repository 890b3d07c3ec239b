"""The list of runs for people: one line each, with who has to act."""

from collections.abc import Iterator, Mapping, Sequence

from pointsman.api.orchestrator.v1.run_pb2 import (
    ATTENTION_CANCELLED,
    ATTENTION_DONE,
    ATTENTION_FAILED,
    ATTENTION_NEEDS_YOU,
    ATTENTION_STUCK,
    ATTENTION_WORKING,
    WAIT_KIND_AGENT,
    Attention,
    Run,
)
from pointsman.cli.render.progress_lines import grade_text
from pointsman.cli.render.run_progress import state_name

HEADER = f"{'RUN':<30}  {'SUBMITTED':<16}  {'STATE':<16}  {'GRADE':<8}  {'ATTENTION':<22}  WHAT"
ATTENTION_WORDS: Mapping[Attention.ValueType, str] = {
    ATTENTION_NEEDS_YOU: "needs you",
    ATTENTION_STUCK: "stuck",
    ATTENTION_WORKING: "working",
    ATTENTION_FAILED: "failed",
    ATTENTION_DONE: "done",
    ATTENTION_CANCELLED: "cancelled",
}


def run_table(runs: Sequence[Run]) -> Iterator[str]:
    """A header and a line per run, or one line that says how to start."""
    if not runs:
        yield "no runs; `pointsman run` starts one"
        return
    yield HEADER
    for run in runs:
        intent = " ".join(f"{origin_mark(run)}{run.intent}".split())[:60]
        submitted = f"{run.created_at.ToDatetime():%Y-%m-%d %H:%M}"
        yield f"{run.id:<30}  {submitted:<16}  {state_name(run):<16}  {grade_text(run.grade).lstrip(', ') or '-':<8}  {attention_text(run):<22}  {intent}"


def attention_text(run: Run) -> str:
    """What the run needs from people, in the console's words, and from whom."""
    asks, waiting = ATTENTION_WORDS.get(run.attention, "-"), run.waiting_for
    if run.attention == ATTENTION_STUCK:
        return f"{asks}: nobody can {waiting.who}"
    if run.attention == ATTENTION_WORKING and waiting.kind == WAIT_KIND_AGENT:
        return f"{asks}: {waiting.holder or waiting.who}"
    return asks


def origin_mark(run: Run) -> str:
    """What stands before the words of a run that does another one again."""
    return f"(again of {run.origin.run_id[:12]}) " if run.HasField("origin") else ""


def origin_text(run: Run) -> str:
    """Which run it does again, and from where on."""
    at = f" on {run.origin.accepted_commit[:12]}" if run.origin.accepted_commit else ""
    return f"again of {run.origin.run_id}, from {run.origin.point} on{at}"


def story_lines(run: Run, runs: Sequence[Run]) -> Iterator[str]:
    """Every run of a run's story, the first first; nothing for a run that stands alone."""
    if len(runs) < 2:
        return
    yield "story"
    for one in sorted(runs, key=lambda one: (one.created_at.ToNanoseconds(), one.id)):
        here = "→" if one.id == run.id else " "
        how = f"from {one.origin.point}" if one.HasField("origin") else "first"
        grade = grade_text(one.grade).lstrip(", ")
        yield f" {here} {one.id}  {how:<14}  {state_name(one):<12}  {grade}".rstrip()
