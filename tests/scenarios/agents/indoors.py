"""A coder that writes nowhere but in its working tree, and keeps a cache there."""

import json
import os
import subprocess
from pathlib import Path

FOLDER = Path(os.environ["POINTSMAN_HANDOFF"])
assert FOLDER.parent == Path.cwd()
Path(".cache-of-its-own").mkdir()
Path(".cache-of-its-own/seen").write_text("hello")
Path("hello/__init__.py").write_text('def greeting(name: str) -> str:\n    return f"Hello, {name}!"\n')
subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", "python3", "-m", "unittest", "-q"], check=True)
criteria = [item["id"] for item in json.loads((FOLDER / "acceptance_criteria.json").read_text())]
claim = {"id": "C1", "statement": "it greets", "criterion_ids": criteria, "evidence_ids": ["E1"]}
(FOLDER / "claims.json").write_text(json.dumps([claim]))
(FOLDER / "changed_files.json").write_text(json.dumps([{"path": "hello/__init__.py", "change": "MODIFIED"}]))
