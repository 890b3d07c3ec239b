"""Command evidence, taken by whoever runs the command: exit code, digest, excerpt, and the tree it ran on."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman._shared.files import atomic_write
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.worker.git import GitFailed, tree_hash, untracked
from pointsman.worker.handoff import BY_PRODUCTS, EVIDENCE
from pointsman.worker.json_files import strict_json, to_plain

EXCERPT_LENGTH = 2000
KEPT_BYTES = 64 * 1024
FOLDER_VARIABLE = "POINTSMAN_HANDOFF"


def command_evidence(
    evidence_id: str, command: Sequence[str], exit_code: int, output: bytes, tree: str
) -> handoff.Evidence:
    """What a command's end proves; `output` is all that it printed."""
    captured_at = Timestamp()
    captured_at.GetCurrentTime()
    return handoff.Evidence(
        id=evidence_id,
        kind=handoff.EVIDENCE_KIND_COMMAND,
        command=command,
        exit_code=exit_code,
        digest=hashlib.sha256(output).hexdigest(),
        excerpt=output[-KEPT_BYTES:].decode(errors="replace").replace("\0", "")[-EXCERPT_LENGTH:],
        tree_hash=tree,
        captured_at=captured_at,
    )


async def capture(command: Sequence[str], directory: Path, evidence_id: str = "") -> handoff.Evidence:
    """Run a command here, show what it prints, and keep it as evidence in the handoff folder, if there is one."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    known = _known(Path(folder)) if folder else []
    evidence_id = evidence_id or f"E{len(known) + 1}"
    earlier = _by_products(Path(folder)) if folder else frozenset()
    before = await _untracked_or_nothing(directory)
    exit_code, output = await _run_and_show(command, directory)
    made = earlier | (await _untracked_or_nothing(directory) - before)
    taken = command_evidence(evidence_id, command, exit_code, output, await _tree_or_nothing(directory, made))
    if folder and made:
        atomic_write(Path(folder) / BY_PRODUCTS, json.dumps(sorted(made), indent=2) + "\n")
    if folder:
        kept = [item for item in known if item.get("id") != evidence_id]
        atomic_write(Path(folder) / EVIDENCE, json.dumps([*kept, entry(taken)], indent=2, ensure_ascii=False) + "\n")
    return taken


def entry(taken: handoff.Evidence) -> dict[str, object]:
    """Command evidence as it stands in the file; its exit code is said even when it is 0."""
    return {**to_plain(taken), "exit_code": taken.exit_code}


def _known(folder: Path) -> list[dict[str, object]]:
    path = folder / EVIDENCE
    if not path.exists():
        return []
    values = strict_json(path.read_bytes(), EVIDENCE)
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _by_products(folder: Path) -> frozenset[str]:
    """Files that earlier commands of this kind have made on their way."""
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
