"""Follows a run to its end or to a question for a person, and renders question and delivery."""

import asyncio
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pointsman.api.handoff.v1.delivery_pb2 import Delivery
from pointsman.api.orchestrator.v1.assignment_pb2 import (
    ASSIGNMENT_STATE_LEASED,
    ASSIGNMENT_STATE_OPEN,
    Assignment,
)
from pointsman.api.orchestrator.v1.run_pb2 import (
    ANSWER_KIND_CLARIFIED,
    ANSWER_KIND_MODIFY,
    ANSWER_KIND_RAISE,
    ANSWER_KIND_RESTART_STAGE,
    ANSWER_KIND_RETRY,
    ANSWER_KIND_SKIP,
    ANSWER_KIND_SKIP_STAGE,
    ANSWER_KIND_WAIVE,
    RUN_STATE_CANCELLED,
    RUN_STATE_COMPLETE,
    RUN_STATE_FAILED,
    AnswerKind,
    Run,
    WaitKind,
)
from pointsman.cli.exit_codes import EXIT_FAILED, EXIT_WAITS_FOR_PERSON
from pointsman.cli.options.run_options import BUDGET_FIELDS
from pointsman.cli.render.progress_lines import grade_text
from pointsman.cli.render.proven_lines import rests_on
from pointsman.cli.render.run_progress import View, state_name
from pointsman.cli.session.coming_conflicts import ComingConflicts
from pointsman.cli.session.missing_agents import MissingAgents
from pointsman.client import Client

TICK_SECONDS = 0.5
_BESIDES = {
    ANSWER_KIND_CLARIFIED: ' --text "…"',
    ANSWER_KIND_MODIFY: ' --text "…"',
    ANSWER_KIND_WAIVE: ' --text "…"',
    ANSWER_KIND_RETRY: " --task TASK",
    ANSWER_KIND_SKIP: " --task TASK",
    ANSWER_KIND_RESTART_STAGE: " --stage STAGE",
    ANSWER_KIND_SKIP_STAGE: " --stage STAGE",
}
"""Options that an answer needs besides its kind."""
LIVE = (ASSIGNMENT_STATE_OPEN, ASSIGNMENT_STATE_LEASED)
TERMINAL = frozenset({RUN_STATE_COMPLETE, RUN_STATE_CANCELLED, RUN_STATE_FAILED})


async def follow(client: Client, run_id: str, view: View, after_seq: int = 0) -> Run:
    """Shows a run until it ends or waits for a person."""
    with view:
        watching = asyncio.create_task(_watch(client, run_id, view, after_seq))
        asked = asyncio.create_task(_until_asked(client, run_id, view))
        try:
            await asyncio.wait((watching, asked), return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                await watching
            else:
                await asked
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(watching), TICK_SECONDS)
        finally:
            watching.cancel()
            asked.cancel()
        return await client.runs.get(run_id)


async def _watch(client: Client, run_id: str, view: View, after_seq: int) -> None:
    async for transition in client.runs.watch(run_id, after_seq):
        view.transition(transition)


async def _until_asked(client: Client, run_id: str, view: View) -> None:
    missing_agents, coming = MissingAgents(client, run_id), ComingConflicts(client, run_id)
    while True:
        await coming.check()
        run = await client.runs.get(run_id)
        view.run(run, await _live(client, run_id) if view.shows_work else ())
        if run.HasField("question"):
            return
        if run.waiting_for.kind == WaitKind.WAIT_KIND_AGENT:
            await missing_agents.check(reserved=run.reserved)
        await asyncio.sleep(TICK_SECONDS)


async def _live(client: Client, run_id: str) -> list[Assignment]:
    return [item async for item in client.agents.assignments(run_id, LIVE)]


def exit_code(run: Run) -> int:
    """The exit code for a run: 0 complete, 4 waits for a person, 1 ended otherwise."""
    if run.state == RUN_STATE_COMPLETE:
        return 0
    return EXIT_FAILED if run.state in TERMINAL else EXIT_WAITS_FOR_PERSON


def question_lines(run: Run) -> Iterator[str]:
    """The open question and how to answer it."""
    question = run.question
    yield f"{run.id} waits for a person: {question.text}"
    for subject in question.subjects:
        if subject not in question.text:
            yield f"  {subject}"
    for kind in question.takes:
        name = AnswerKind.Name(kind).removeprefix("ANSWER_KIND_").lower()
        given = f" --budget {raised_budget(run)}" if kind == ANSWER_KIND_RAISE else _BESIDES.get(kind, "")
        yield f"  {program()} answer {run.id} {name}{given}"
    yield f"  {program()} cancel {run.id}"


def raised_budget(run: Run) -> str:
    """Twice the exhausted budget, as `--budget` takes it."""
    short = run.question.subjects[0] if run.question.subjects else ""
    if short == "wall_clock":
        return f"minutes={max(1, 2 * run.budget.wall_clock.seconds // 60)}"
    name = "cost_micros" if short == "cost" else short
    name = name if name in BUDGET_FIELDS else "assignments"
    return f"{name}={max(1, 2 * getattr(run.budget, name))}"


def delivery_lines(run: Run, delivery: Delivery, folder: Path | None = None) -> Iterator[str]:
    """The delivery, the open risks, and the commands to look further."""
    yield f"{state_name(run)}  {run.id}{grade_text(delivery.grade)}{f'  ({run.end_reason})' if run.end_reason else ''}"
    for item in delivery.deliverables:
        once = ", proven once, in its TEST stage" if item.proof_reused else ""
        yield f"  delivered  {item.task_id}: {item.statement}{grade_text(item.grade)}{once}"
        yield from (f"    claim  {claim.statement}" for claim in item.claims)
        yield from (f"    file   {file.path}" for file in item.changed_files)
        if item.HasField("proof"):
            yield from (f"    proof  {line}" for line in rests_on(item.proof))
    yield from (f"  open risk  {risk.statement}" for risk in delivery.open_risks)
    if delivery.accepted_commit:
        yield f"  commit  {delivery.accepted_commit}"
    if run.traceparent:
        yield f"  trace   {run.traceparent.split('-')[1]}"
    elsewhere = f" --repo {shlex.quote(str(folder))}" if folder and not Path.cwd().is_relative_to(folder) else ""
    yield f"next: {program()} show {run.id} · trace {run.id} · audit {run.id} · deliver {run.id}{elsewhere}"


def program() -> str:
    """How to call this program: by its name or, where that is not on the PATH, by its path."""
    beside = Path(sys.executable).with_name("pointsman")
    if shutil.which("pointsman") is not None or not beside.exists():
        return "pointsman"
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
