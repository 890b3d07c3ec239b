"""The files of a session in the user's directory: reports and reflections, whole or not there, gone after three days."""

import contextlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from control import CALL_SECONDS, Control, config_directory

from pointsman._shared.files import atomic_write
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import state_pb2 as sp

STALE_SECONDS = 3 * 24 * 3600
STALE_PATTERNS = ("pipeline-context-*.md", "reflection-memory-*.md", "barrier-state-*.json")
_REPORT_HANDLE = re.compile(r"^- Report: context:.*$", re.MULTILINE)
MAX_REPORT_BYTES = 512 * 1024
MAX_TRANSCRIPT_BYTES = 256 * 1024
MAX_MESSAGE_CHARACTERS = 16 * 1024
MAX_NODE_CONTEXT_CHARACTERS = 499 * 4


def context_path(folder: Path, session: str, stage: str) -> Path:
    """Where a stage's report is."""
    return folder / f"pipeline-context-{session}-{_safe(stage)}.md"


def reflection_path(folder: Path, session: str, stage: str) -> Path:
    """Where the reflections of a stage are."""
    return folder / f"reflection-memory-{session}-{_safe(stage)}.md"


def _safe(stage: str) -> str:
    return stage.replace(":", "-").replace("/", "-")


def remove_stale(folder: Path) -> int:
    """Delete what is older than three days; how many files there were."""
    oldest = time.time() - STALE_SECONDS  # noqa: TID251 - the age of files on this machine
    stale = [
        path
        for pattern in STALE_PATTERNS
        for path in folder.glob(pattern)
        if path.is_file() and path.stat().st_mtime < oldest
    ]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


async def materialise(control: Control, session: str, pipeline_id: str, delegation: sp.Delegation) -> dict[str, Path]:
    """Write the reports and reflections that a delegation should read; each handle with its file."""
    folder = config_directory(control.environment)
    found: dict[str, Path] = {}
    for handle in delegation.context_handles:
        wanted = rq.GetContextRequest(pipeline_id=pipeline_id, handle=handle, delegation_id=delegation.delegation_id)
        with _missing_is_fine():
            body = (await control.pipelines.GetContext(wanted, timeout=CALL_SECONDS)).body
            found[handle] = context_path(folder, session, handle.removeprefix("context:"))
            atomic_write(found[handle], body)
    for stage in delegation.reflection_stages:
        with _missing_is_fine():
            known = await control.pipelines.GetReflection(
                rq.GetReflectionRequest(pipeline_id=pipeline_id, stage=stage), timeout=CALL_SECONDS
            )
            found[f"reflection:{stage}"] = reflection_path(folder, session, stage)
            atomic_write(
                found[f"reflection:{stage}"], _with_report_path(known.body, context_path(folder, session, stage))
            )
    return found


def _with_report_path(reflection: str, report: Path) -> str:
    """The reflections with the report's path in place of its handle, where the report is."""
    return _REPORT_HANDLE.sub(lambda _: f"- Report: {report}", reflection) if report.exists() else reflection


@contextlib.contextmanager
def _missing_is_fine() -> Any:
    """A report that is not there leaves the hint; anything else is a failure."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise


def node_context_with_paths(node_context_json: str, files: dict[str, Path]) -> str:
    """The node context with files in place of handles, if it still fits its budget."""
    content = json.loads(node_context_json)
    content["context_files"] = [str(files.get(handle, handle)) for handle in content["context_files"]]
    retry = content.get("retryContext")
    if retry and "reflectionFile" in retry:
        handles = retry["reflectionFile"].split(",")
        retry["reflectionFile"] = ",".join(str(files.get(handle, handle)) for handle in handles)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MAX_NODE_CONTEXT_CHARACTERS else node_context_json


def read_report(path: Path) -> str:
    """A report that a stage left behind; empty for none."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_REPORT_BYTES).decode(errors="ignore").replace("\0", "")
    except OSError:
        return ""


def read_transcript(path: str, last_message: str) -> str:
    """The end of a sub-agent's transcript, from the beginning of a line, and its last message, which may not be in it yet."""
    lines = _tail(Path(path).expanduser()) if path else ""
    if last_message:
        lines += "\n" + json.dumps({"role": "assistant", "content": last_message[-MAX_MESSAGE_CHARACTERS:]})
    return lines.strip("\n")


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MAX_TRANSCRIPT_BYTES))
            data = file.read(MAX_TRANSCRIPT_BYTES)
    except OSError:
        return ""
    whole: Sequence[bytes] = data.split(b"\n", 1)
    text = whole[-1] if size > MAX_TRANSCRIPT_BYTES else data
    return text.decode(errors="replace").replace("\0", "")
