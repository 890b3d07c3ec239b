"""A run as a task of both eras: the Tasks extension of 2026-07-28 and the experimental tasks of 2025-11-25."""

from datetime import UTC
from typing import Any

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_CANCELLED, RUN_STATE_COMPLETE, RUN_STATE_FAILED, Run
from pointsman.mcp.questions import elicitation
from pointsman.mcp.results import run_result

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MILLISECONDS = 2000
_ENDS = {RUN_STATE_COMPLETE: "completed", RUN_STATE_CANCELLED: "cancelled"}


def modern_task(run: Run) -> dict[str, Any]:
    """The handle: `Task` of the extension."""
    status = "completed" if run.state == RUN_STATE_FAILED else _status(run)
    return {**_common(run, status), "ttlMs": None, "pollIntervalMs": POLL_MILLISECONDS}


def handshake_task(run: Run) -> dict[str, Any]:
    """The same as 2025-11-25 has it, where a run that failed is a failed task."""
    status = "failed" if run.state == RUN_STATE_FAILED else _status(run)
    return {**_common(run, status), "ttl": None, "pollInterval": POLL_MILLISECONDS}


def input_requests(run: Run) -> dict[str, Any]:
    """The open question as the one outstanding request, under the question's id, which is never used again."""
    return {run.question.id: {"method": "elicitation/create", "params": elicitation(run)}}


def _status(run: Run) -> str:
    return _ENDS.get(run.state) or ("input_required" if run.HasField("question") else "working")


def _common(run: Run, status: str) -> dict[str, Any]:
    shown = run_result(run)
    message = shown.question.text if shown.question else shown.end_reason or shown.waits_for
    return {
        "taskId": run.id,
        "status": status,
        "statusMessage": f"{shown.state}: {message}" if message else shown.state,
        "createdAt": run.created_at.ToDatetime(tzinfo=UTC).isoformat(),
        "lastUpdatedAt": run.updated_at.ToDatetime(tzinfo=UTC).isoformat(),
    }
