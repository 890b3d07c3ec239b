"""Evidence of a command: what it printed, how it ended, and on which tree."""

import hashlib
import json
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.worker.evidence import capture
from pointsman.worker.git import text, tree_hash
from pointsman.worker.output_reader import by_products, read_list
from tests.unit.worker.repositories import clone_of, repository


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


async def test_what_a_command_makes_on_its_way_is_no_part_of_the_work(tmp_path: Path, folder: Path) -> None:
    await repository(tmp_path / "r", {"a/m.py": "x = 1\n"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    base, tree = await text(tmp_path / "r", "rev-parse", "HEAD"), tmp_path / "tree"
    await clone.check_out(base, tree)
    (tree / "mine").write_text("new\n")
    make = "import sys; sys.dont_write_bytecode = False; import a.m; open('report ü', 'w'); open('kept', 'w')"
    taken = await capture(["python3", "-c", make], tree)
    (folder / "changed_files.json").write_text('[{"path": "mine", "change": "ADDED"}]')
    captured = await clone.capture(tree, base, "box", by_products(folder))
    assert [file.path for file in captured.changed_files] == ["mine"]
    assert taken.tree_hash == captured.tree
    (folder / "changed_files.json").write_text(
        '[{"path": "mine", "change": "ADDED"}, {"path": "kept", "change": "ADDED"}]'
    )
    captured = await clone.capture(tree, base, "box", by_products(folder))
    assert [file.path for file in captured.changed_files] == ["kept", "mine"]


async def test_python_leaves_no_compiled_files_behind(tmp_path: Path, folder: Path) -> None:
    await repository(tmp_path / "r", {"a/m.py": "x = 1\n"})
    await capture(["python3", "-c", "import a.m"], tmp_path / "r")
    assert not (tmp_path / "r" / "a" / "__pycache__").exists()
