"""A coder that misbehaves: usage `hostile.py HOW VICTIM`."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

HOW, VICTIM = sys.argv[1], Path(sys.argv[2])
FOLDER = Path(os.environ["POINTSMAN_HANDOFF"])
TESTS = ["python3", "-m", "unittest", "discover", "-q"]


def report(changed: list[str], command: list[str]) -> None:
    criteria = [item["id"] for item in json.loads((FOLDER / "acceptance_criteria.json").read_text())]
    claim = {"id": "CL1", "statement": "done", "criterion_ids": criteria, "evidence_ids": ["E1"]}
    evidence = {"id": "E1", "kind": "COMMAND", "command": command, "exit_code": 0, "excerpt": "OK"}
    (FOLDER / "claims.json").write_text(json.dumps([claim]))
    (FOLDER / "evidence.json").write_text(json.dumps([evidence]))
    (FOLDER / "changed_files.json").write_text(json.dumps([{"path": path, "change": "MODIFIED"} for path in changed]))


def writes_outside() -> None:
    VICTIM.write_text("overwritten")


def floods() -> None:
    while True:
        print("x" * 1000)


def forks() -> None:
    for _ in range(3):
        subprocess.Popen(["sleep", "987654"], start_new_session=True)
    report([], TESTS)


def ignores_time() -> None:
    threading.Event().wait()


def lies_about_exit_codes() -> None:
    Path("hello/__init__.py").write_text("broken = True\n")
    report(["hello/__init__.py"], TESTS)


def invents_files() -> None:
    report(["hello/__init__.py"], TESTS)


def proves_nothing() -> None:
    Path("hello/__init__.py").write_text("broken = True\n")
    report(["hello/__init__.py"], ["true"])


def plants_a_hook() -> None:
    subprocess.run(["git", "config", "core.fsmonitor", f"touch {VICTIM}"], check=True)
    subprocess.run(["git", "config", "core.hooksPath", str(Path.cwd())], check=True)
    report([], TESTS)


globals()[HOW]()
