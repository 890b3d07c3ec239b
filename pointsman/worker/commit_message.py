"""Messages of the commits that hold agents' work: a subject from the task, its claims, and trailers to find the run."""

from collections.abc import Iterable

from pointsman.api.handoff.v1.handoff_pb2 import Claim, MasterTask
from pointsman.worker.quoting import printable

MAX_SUBJECT, MAX_STATEMENT, MAX_CLAIMS = 72, 500, 50


def work_message(run_id: str, task: MasterTask, claims: Iterable[Claim]) -> str:
    """The message of a coder's commit."""
    stated = [f"- {one_line(claim.id, 128)}: {one_line(claim.statement, MAX_STATEMENT)}" for claim in claims]
    shown = stated[:MAX_CLAIMS]
    if len(stated) > MAX_CLAIMS:
        shown.append(f"- and {len(stated) - MAX_CLAIMS} more")
    body = "\n".join(("Its author claims:", *shown)) if shown else ""
    return _joined(subject(task.name or f"Task {task.task_id}"), body, run_id, task.task_id)


def merge_message(run_id: str, task_id: str) -> str:
    """The message of the commit that merges accepted work."""
    return _joined(subject(f"Merge the accepted work on {task_id}"), "", run_id, task_id)


def _joined(subject: str, body: str, run_id: str, task_id: str) -> str:
    trailers = f"Pointsman-Run: {one_line(run_id, 128)}\nPointsman-Task: {one_line(task_id, 128)}"
    return "\n\n".join(part for part in (subject, body, trailers) if part)


def subject(text: str) -> str:
    """Others' words as the first line of a message."""
    line = one_line(text, 4 * MAX_SUBJECT)
    return line if len(line) <= MAX_SUBJECT else f"{line[: MAX_SUBJECT - 1].rstrip()}…"


def one_line(text: str, length: int) -> str:
    """Others' words on one line, so that none of them can pass for a trailer."""
    return " ".join(printable(text).split())[:length] or "-"
