"""The demo's coder: a script that edits files, runs the tests and reports; at its first try it lies.

It knows nothing of Pointsman but the contract of the command agent: the handoff folder, and the three files to leave.
"""

import hashlib
import json
import os
import subprocess
from pathlib import Path

TESTS = ["python3", "-m", "unittest", "discover", "-q"]
WRONG = 'def greeting(name: str) -> str:\n    """Greet somebody."""\n    return "Hello, " + name\n'
RIGHT = 'def greeting(name: str) -> str:\n    """Greet somebody by name."""\n    return f"Hello, {name}!"\n'


def main() -> None:
    """Do the task that the handoff folder describes."""
    folder = Path(os.environ["POINTSMAN_HANDOFF"])
    task = json.loads((folder / "master_task.json").read_text())
    criteria = [item["id"] for item in json.loads((folder / "acceptance_criteria.json").read_text())]
    source = Path("hello/__init__.py")
    if task.get("attempt", 1) == 1:
        source.write_text(WRONG)
        evidence = _forged()
    else:
        source.write_text(RIGHT)
        subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", *TESTS], check=False)  # noqa: S603, S607
        evidence = json.loads((folder / "evidence.json").read_text())
    claim = {
        "id": "CL1",
        "statement": "greeting() greets by name, and the tests pass",
        "criterion_ids": criteria,
        "evidence_ids": ["E1"],
    }
    _leave(folder, "evidence.json", evidence)
    _leave(folder, "claims.json", [claim])
    _leave(folder, "changed_files.json", [{"path": str(source), "change": "MODIFIED"}])


def _forged() -> list[dict[str, object]]:
    """Forged evidence of a test run that never took place."""
    digest = hashlib.sha256(b"OK").hexdigest()
    return [{"id": "E1", "kind": "COMMAND", "command": TESTS, "exit_code": 0, "digest": digest, "excerpt": "OK"}]


def _leave(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(json.dumps(value))


if __name__ == "__main__":
    main()
