"""Evidence of a command: what it printed, how it ended, and on which tree."""

import hashlib
import json
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.worker.collection import read_list
from pointsman.worker.evidence import capture
from pointsman.worker.git import tree_hash
from tests.unit.worker.repositories import repository


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "handoff"
    made.mkdir()
    monkeypatch.setenv("POINTSMAN_HANDOFF", str(made))
    return made


async def test_exit_code_digest_excerpt_and_tree_are_kept(tmp_path: Path, folder: Path) -> None:
    await repository(tmp_path / "r", {"a": "1"})
    (tmp_path / "r" / "a").write_text("changed")
    taken = await capture(["sh", "-c", "echo out; exit 3"], tmp_path / "r")
    assert (taken.id, taken.exit_code, taken.excerpt) == ("E1", 3, "out\n")
    assert taken.digest == hashlib.sha256(b"out\n").hexdigest()
    assert taken.tree_hash == await tree_hash(tmp_path / "r")
    assert read_list(folder, "evidence.json", handoff.Evidence) == [taken]


async def test_entries_are_numbered_and_one_of_the_same_id_is_replaced(tmp_path: Path, folder: Path) -> None:
    await capture(["true"], tmp_path)
    await capture(["false"], tmp_path)
    await capture(["true"], tmp_path, "E2")
    entries = json.loads((folder / "evidence.json").read_text())
    assert [(entry["id"], entry["exit_code"]) for entry in entries] == [("E1", 0), ("E2", 0)]


async def test_a_command_that_cannot_start_is_evidence_of_failure(tmp_path: Path, folder: Path) -> None:
    assert (await capture(["no-such-command"], tmp_path)).exit_code == 127
