"""A coder that writes the greeting, and later repairs what it is told was found; it knows nothing else to do."""

import json
import os
import subprocess
from pathlib import Path

TESTS = ["python3", "-m", "unittest", "discover", "-q"]
MODULE = Path("hello/__init__.py")
REPAIRS = {
    "E999 no line about parting": 'def parting(name: str) -> str:\n    return f"Bye, {name}!"\n',
    "please name the author": 'AUTHOR = "ada"\n',
    "please name the year": "YEAR = 1843\n",
}
"""What somebody may find, and the lines that repair it."""


def repaired(before: str, prompt: str) -> str:
    """The module with what is wanted of it."""
    if "NotImplementedError" in before:
        return 'def greeting(name: str) -> str:\n    return f"Hello, {name}!"\n'
    (lines,) = [lines for found, lines in REPAIRS.items() if found in prompt]
    return f"{before}\n\n{lines}"


def main() -> None:
    folder = Path(os.environ["POINTSMAN_HANDOFF"])
    MODULE.write_text(repaired(MODULE.read_text(), (folder / "prompt.md").read_text()))
    Path("environment.txt").write_text("\n".join(f"{name}={value}" for name, value in sorted(os.environ.items())))
    subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", *TESTS], check=True)
    criteria = [item["id"] for item in json.loads((folder / "acceptance_criteria.json").read_text())]
    claim = {"id": "CL1", "statement": "the tests pass", "criterion_ids": criteria, "evidence_ids": ["E1"]}
    (folder / "claims.json").write_text(json.dumps([claim]))
    changes = [{"path": name, "change": "MODIFIED"} for name in (str(MODULE), "environment.txt")]
    (folder / "changed_files.json").write_text(json.dumps(changes))


main()
