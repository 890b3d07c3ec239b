"""A person's look at a plan: shown, edited as a file, approved."""

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1.run_pb2 import ANSWER_KIND_MODIFY, ANSWER_KIND_PROCEED, QUESTION_KIND_DEBATE, Run
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.follow import program
from pointsman.client import Client, Reply
from pointsman.worker import output_reader
from pointsman.worker.handoff import PLAN
from pointsman.worker.json_files import InvalidFile, to_json_object


@dataclass(frozen=True, slots=True)
class PlanReview:
    """What to do about a plan once it is there."""

    edit: bool = False
    approve: bool = False
    given: work.Plan | None = None
    """The user's own plan, which takes the place of the first one."""


def asks_about_plan(run: Run) -> bool:
    """Whether a run waits for a person's word about its plan."""
    return run.HasField("question") and run.question.kind == QUESTION_KIND_DEBATE


async def plan_of(client: Client, run_id: str) -> work.Plan:
    """The plan of a run as it is now; ends the command where there is none yet."""
    made = [row.run.planned.plan.document async for row in client.runs.details(run_id) if row.event == "planned"]
    if not made:
        fail_usage(f"{run_id} has no plan yet; `{program()} watch {run_id}` follows it")
    return made[-1]


def plan_lines(plan: work.Plan) -> Iterator[str]:
    """A plan for people: each task with what it waits for, its files and what proves it."""
    for task in plan.tasks:
        size = f" ({task.size})" if task.size else ""
        after = f", after {', '.join(task.depends)}" if task.depends else ""
        yield f"{task.id}  {task.name}{size}{after}"
        if task.files:
            yield f"    files  {', '.join(task.files)}"
        yield from (f"    proof  {_proof(item.statement, item.verify_command)}" for item in task.acceptance_criteria)
        if task.tests_may_change:
            yield "    may change tests"
        if task.quality_gate:
            yield "    asks you when it is done"


def _proof(statement: str, command: object) -> str:
    words = [str(word) for word in command]  # type: ignore[attr-defined]
    return f"`{shlex.join(words)}`" if words else statement


def plan_text(plan: work.Plan) -> str:
    """A plan as a file that a person edits."""
    return json.dumps(to_json_object(plan), indent=2, ensure_ascii=False) + "\n"


def read_plan(file: Path) -> work.Plan:
    """Reads a plan from a file; ends the command with all its problems."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            (Path(folder) / PLAN).write_bytes(file.read_bytes())
            return output_reader.plan(Path(folder))
        except FileNotFoundError:
            fail_usage(f"there is no file {file}")
        except InvalidFile as error:
            fail_usage(f"{file}: {error}")


def edited(plan: work.Plan) -> work.Plan | None:
    """The plan as a person left it in their editor; None where nothing was changed."""
    before = plan_text(plan)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / PLAN
        file.write_text(before)
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        done = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603 - the user's own editor
        if done.returncode != 0:
            fail_usage(f"the editor `{editor}` ended with exit code {done.returncode}; the plan is as it was")
        return read_plan(file) if file.read_text() != before else None


async def apply_plan(client: Client, run: Run, plan: work.Plan) -> Run:
    """Puts a person's plan in the place of the one that is asked about."""
    _require_question(run)
    return await client.runs.answer(run.id, run.question.id, Reply(ANSWER_KIND_MODIFY, plan=plan))


async def approve_plan(client: Client, run: Run) -> Run:
    """Says yes to the plan as it is."""
    _require_question(run)
    return await client.runs.answer(run.id, run.question.id, Reply(ANSWER_KIND_PROCEED))


def _require_question(run: Run) -> None:
    if not asks_about_plan(run):
        fail_usage(f'{run.id} does not ask about its plan; `{program()} change {run.id} "…"` changes what is wanted')
