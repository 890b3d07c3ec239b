"""A coder that writes at once and hands in when there is GATE/open: usage `early_writer.py GATE WORDS`."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

TESTS = ["python3", "-m", "unittest", "discover", "-q"]


def main() -> None:
    gate, words, pause = Path(sys.argv[1]) / "open", sys.argv[2], threading.Event()
    folder = Path(os.environ["POINTSMAN_HANDOFF"])
    lines = f'def greeting(name: str) -> str:\n    """{words}"""\n    return f"Hello, {{name}}!"\n'
    Path("hello/__init__.py").write_text(lines)
    while not gate.exists():
        pause.wait(0.05)
    subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", *TESTS], check=True)
    criteria = [item["id"] for item in json.loads((folder / "acceptance_criteria.json").read_text())]
    claim = {"id": "CL1", "statement": "the tests pass", "criterion_ids": criteria, "evidence_ids": ["E1"]}
    (folder / "claims.json").write_text(json.dumps([claim]))
    (folder / "changed_files.json").write_text(json.dumps([{"path": "hello/__init__.py", "change": "MODIFIED"}]))


main()
