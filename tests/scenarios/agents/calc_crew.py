"""A program that stands for a coding agent in every role, on the repository of the tutorial: it plans, mends add(), says yes."""

import json
import os
import subprocess
from pathlib import Path

FOLDER = Path(os.environ["POINTSMAN_HANDOFF"])
TESTS = ["python3", "-m", "unittest", "discover", "-q"]


def leave(name: str, value: object) -> None:
    (FOLDER / name).write_text(json.dumps(value))


def plan() -> None:
    criterion = {"id": "K1", "statement": "the tests pass", "verify_command": TESTS, "required": True}
    task = {"id": "T1", "name": "mend add()", "actions": ["mend add()"], "files": ["calc.py"]}
    leave("plan.json", {"tasks": [{**task, "acceptance_criteria": [criterion]}], "confidence": 0.9})


def code() -> None:
    Path("calc.py").write_text("def add(a, b):\n    return a + b\n")
    subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", *TESTS], check=True)
    criteria = [item["id"] for item in json.loads((FOLDER / "acceptance_criteria.json").read_text())]
    leave("claims.json", [{"id": "C1", "statement": "it adds", "criterion_ids": criteria, "evidence_ids": ["E1"]}])
    leave("changed_files.json", [{"path": "calc.py", "change": "MODIFIED"}])


prompt = (FOLDER / "prompt.md").read_text()
if "plan.schema.json" in prompt:
    plan()
elif "decision.json" in prompt:
    leave("decision.json", {"decision": "pass"})
else:
    code()
