"""A coder of the campaign: writes its piece in the middle of its work, and hands in at the end: `coder.py SECONDS`."""

import json
import os
import re
import runpy
import subprocess
import sys
import threading
from pathlib import Path

PIECES = runpy.run_path(str(Path(__file__).parent / "pieces.py"))
"""It runs alone, in a sandbox, without our packages."""

TESTS = ["python3", "-m", "unittest", "discover", "-q"]


def main() -> None:
    lasts, pause = int(sys.argv[1]), threading.Event()
    folder = Path(os.environ["POINTSMAN_HANDOFF"])
    prompt = (folder / "prompt.md").read_text()
    named = re.search(r"piece (\d+)", prompt)
    assert named is not None
    number, linked = int(named[1]), "Bring the work below" in prompt
    lasts = 3 if linked else lasts + PIECES["chance"]("last", number, lasts)
    writes = PIECES["chance"]("write", number, lasts)
    pause.wait(writes)
    before = Path("shared.txt").read_text()
    name, content = PIECES["written"](number, before, linked=linked)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(content)
    pause.wait(lasts - writes)
    subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", *TESTS], check=True)
    criteria = [item["id"] for item in json.loads((folder / "acceptance_criteria.json").read_text())]
    claim = {"id": "CL1", "statement": "the tests pass", "criterion_ids": criteria, "evidence_ids": ["E1"]}
    (folder / "claims.json").write_text(json.dumps([claim]))
    change = "MODIFIED" if name == "shared.txt" else "ADDED"
    (folder / "changed_files.json").write_text(json.dumps([{"path": name, "change": change}]))


main()
