"""Command evidence: exit code, digest, excerpt, and the tree that the command ran on."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman._shared.excerpt import excerpt
from pointsman._shared.files import atomic_write
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.worker.git import GitFailed, tree_hash, untracked
from pointsman.worker.handoff import BY_PRODUCTS, EVIDENCE
from pointsman.worker.json_files import strict_json, to_json_object

EXCERPT_LENGTH = 2000
FOLDER_VARIABLE = "POINTSMAN_HANDOFF"


def command_evidence(
    evidence_id: str, command: Sequence[str], exit_code: int, output: bytes, tree: str
) -> handoff.Evidence:
    """Evidence of a command that ended; `output` is everything that it printed."""
    captured_at = Timestamp()
    captured_at.GetCurrentTime()
    return handoff.Evidence(
        id=evidence_id,
        kind=handoff.EVIDENCE_KIND_COMMAND,
        command=command,
        exit_code=exit_code,
        digest=hashlib.sha256(output).hexdigest(),
        excerpt=excerpt(output.decode(errors="replace").replace("\0", ""), EXCERPT_LENGTH),
        tree_hash=tree,
        captured_at=captured_at,
    )


async def capture(command: Sequence[str], directory: Path, evidence_id: str = "") -> handoff.Evidence:
    """Runs a command, shows its output, and stores it as evidence in the handoff folder, if there is one."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    stored = _stored_entries(Path(folder)) if folder else []
    evidence_id = evidence_id or f"E{len(stored) + 1}"
    earlier = _by_products(Path(folder)) if folder else frozenset()
    before = await _untracked_or_nothing(directory)
    exit_code, output = await _run_and_show(command, directory)
    made = earlier | (await _untracked_or_nothing(directory) - before)
    taken = command_evidence(evidence_id, command, exit_code, output, await _tree_or_nothing(directory, made))
    if folder and made:
        atomic_write(Path(folder) / BY_PRODUCTS, json.dumps(sorted(made), indent=2) + "\n")
    if folder:
        others = [item for item in stored if item.get("id") != evidence_id]
        atomic_write(Path(folder) / EVIDENCE, json.dumps([*others, entry(taken)], indent=2, ensure_ascii=False) + "\n")
    return taken


def entry(taken: handoff.Evidence) -> dict[str, object]:
    """Command evidence as the file has it, with its exit code even when that is 0."""
    return {**to_json_object(taken), "exit_code": taken.exit_code}


def _stored_entries(folder: Path) -> list[dict[str, object]]:
    path = folder / EVIDENCE
    if not path.exists():
        return []
    values = strict_json(path.read_bytes(), EVIDENCE)
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _by_products(folder: Path) -> frozenset[str]:
    """Files that earlier evidence commands created."""
    path = folder / BY_PRODUCTS
    values = strict_json(path.read_bytes(), BY_PRODUCTS) if path.exists() else []
    return frozenset(value for value in values if isinstance(value, str)) if isinstance(values, list) else frozenset()


async def _run_and_show(command: Sequence[str], directory: Path) -> tuple[int, bytes]:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=directory,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        return 127, f"cannot start {command[0]!r}: {error.strerror}\n".encode()
    assert process.stdout is not None
    output = bytearray()
    while chunk := await process.stdout.read(8192):
        output += chunk
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()
    return await process.wait(), bytes(output)


async def _tree_or_nothing(directory: Path, left_out: Collection[str]) -> str:
    try:
        return await tree_hash(directory, left_out)
    except GitFailed:
        return ""


async def _untracked_or_nothing(directory: Path) -> frozenset[str]:
    try:
        return await untracked(directory)
    except GitFailed:
        return frozenset()
