"""A coder without a model: it knows one bug, repairs it, runs what proves the work, and hands it in."""

import json
import os
import subprocess
import sys
from pathlib import Path


def main(change_file: str) -> None:
    """Repairs the bug that a file describes, in the current folder."""
    change = json.loads(Path(change_file).read_text())
    path = Path(change["file"])
    path.write_text(path.read_text().replace(change["wrong"], change["right"], 1))
    handoff = Path(os.environ["POINTSMAN_HANDOFF"])
    criteria = json.loads((handoff / "acceptance_criteria.json").read_text())
    evidence = []
    for number, criterion in enumerate(criteria, 1):
        if command := criterion.get("verify_command"):
            evidence.append(f"E{number}")
            recorded = ["pointsman", "evidence", "run", "--id", evidence[-1], "--", *command]
            print(recorded, subprocess.run(recorded, check=False).returncode, flush=True)
    ids = {"criterion_ids": [one["id"] for one in criteria], "evidence_ids": evidence}
    claim = {"id": "C1", "statement": f"{change['file']} is repaired", **ids}
    (handoff / "claims.json").write_text(json.dumps([claim]))
    (handoff / "changed_files.json").write_text(json.dumps([{"path": change["file"], "change": "MODIFIED"}]))


if __name__ == "__main__":
    main(sys.argv[1])
