"""A coder that appends its task's name to each file that the plan gives it, and says what it did."""

import json
import os
import subprocess
from pathlib import Path

FOLDER = Path(os.environ["POINTSMAN_HANDOFF"])
TASK = json.loads((FOLDER / "master_task.json").read_text())
CRITERIA = [item["id"] for item in json.loads((FOLDER / "acceptance_criteria.json").read_text())]

FILES = TASK.get("files", ["log"])
for name in FILES:
    path = Path(name)
    before = path.read_text() if path.exists() else ""
    path.write_text(f"{before}{TASK['name']}\n")
subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", "make", "check"], check=True)
changes = [{"path": name, "change": "MODIFIED"} for name in FILES]
claim = {"id": "CL1", "statement": "appended", "criterion_ids": CRITERIA, "evidence_ids": ["E1"]}
(FOLDER / "claims.json").write_text(json.dumps([claim]))
(FOLDER / "changed_files.json").write_text(json.dumps(changes))
