"""A file of tasks, ours or another tool's, as the plan of a run."""

from pathlib import Path

from pointsman.api.handoff.v1.work_pb2 import Plan, PlanTask
from pointsman.cli.options.input_files import read_text
from pointsman.cli.options.usage import fail_usage
from pointsman.services.workflow.domain.enums import SETTLED_TASKS
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.tasks_reader import read_any

MOST_TASKS = 256


def plan_from_file(file: Path, tag: str = "") -> Plan:
    """The open tasks of a file as a plan; ends the command with every problem by its line."""
    found = read_any(read_text(str(file)), tag)
    if found.problems:
        problems = "; ".join(problem.description for problem in found.problems[:10])
        fail_usage(f"--tasks {file}: {problems}")
    still_open = [task.spec for task in found.tasks if task.status not in SETTLED_TASKS]
    if not still_open:
        fail_usage(f"--tasks {file}: every task is done; there is nothing to work on")
    if len(still_open) > MOST_TASKS:
        fail_usage(f"--tasks {file}: {len(still_open)} open tasks; a run takes {MOST_TASKS} at most: split the file")
    ids = {spec.task_id for spec in still_open}
    tasks = [_task(spec, ids, untrusted=found.from_tracker) for spec in still_open]
    return Plan(tasks=tasks, confidence=1.0)


def _task(spec: TaskSpec, ids: set[str], *, untrusted: bool) -> PlanTask:
    return PlanTask(
        untrusted=untrusted,
        id=spec.task_id,
        name=spec.name,
        actions=spec.actions,
        files=spec.files,
        requirement=spec.requirement,
        depends=[one for one in spec.depends if one in ids],
        blocked_by=spec.blocked_by,
        phase=spec.phase,
        quality_gate=spec.quality_gate,
    )
