"""One command for every role: it sees by the handoff what is asked, and leaves the files that are wanted."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

FOLDER = Path(os.environ["POINTSMAN_HANDOFF"])
REQUEST = json.loads((FOLDER / "request.json").read_text())
PROMPT = (FOLDER / "prompt.md").read_text()


def leave(name: str, value: object) -> None:
    (FOLDER / name).write_text(value if isinstance(value, str) else json.dumps(value))


def plan() -> None:
    command = ["python3", "-m", "unittest", "discover", "-q"]
    criterion = {"id": "K1", "statement": "the tests pass", "verify_command": command, "required": True}
    by_word = {"id": "K2", "statement": "it reads well", "required": True}
    task: dict[str, object] = {
        "id": "T1",
        "name": "greet",
        "actions": ["write the greeting"],
        "files": ["hello/__init__.py"],
    }
    task["acceptance_criteria"] = [criterion, by_word]
    slots = [{"id": "style", "question": "how is the code written?"}, {"id": "tests", "question": "how is it tested?"}]
    leave("plan.json", {"tasks": [task], "confidence": 0.9, "research_slots": slots})


def research() -> None:
    leave("summary.md", f"# {REQUEST['slot']['question']}\n\nPlainly.\n")
    leave("memory.jsonl", '{"note": "plain"}\n')
    leave("analysis_meta.json", {"confidence": 0.9})


def code() -> None:
    for slot in ("style", "tests"):
        assert (FOLDER / "research_bundle" / slot / "summary.md").read_text().splitlines()[1].startswith("# how is")
        assert json.loads((FOLDER / "research_bundle" / slot / "memory.jsonl").read_text()) == {"note": "plain"}
    assert json.loads((FOLDER / "master_task.json").read_text())["name"] == "greet"
    assert [item["id"] for item in json.loads((FOLDER / "acceptance_criteria.json").read_text())][:2] == ["K1", "K2"]
    assert "# Design" in (FOLDER / "detail_design.md").read_text()
    path = Path("hello/__init__.py")
    path.write_text('def greeting(name: str) -> str:\n    return f"Hello, {name}!"\n')
    command = ["python3", "-m", "unittest", "discover", "-q"]
    subprocess.run(["pointsman", "evidence", "run", "--", *command], check=True)
    evidence = json.loads((FOLDER / "evidence.json").read_text())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    leave("evidence.json", [*evidence, {"id": "F1", "kind": "FILE", "path": str(path), "digest": digest}])
    first = {"id": "C1", "statement": "the tests pass", "criterion_ids": ["K1"], "evidence_ids": ["E1"]}
    second = {"id": "C2", "statement": "it is short", "criterion_ids": ["K2"], "evidence_ids": ["F1"]}
    leave("claims.json", [first, second])
    leave("changed_files.json", [{"path": str(path), "change": "modified"}])


def review() -> None:
    assert "return f" in Path("hello/__init__.py").read_text()
    for name in ("claims.json", "evidence.json", "changed_files.json"):
        assert json.loads((FOLDER / "coder_result" / name).read_text())
    leave("decision.json", {"decision": "pass", "residual_risks": [], "feedback": []})


leave("usage.json", {"tokens": 100, "cost_micros": 7})
if "Leave " in PROMPT and "/plan.json." in PROMPT:
    plan()
elif "summary.md (what you found)" in PROMPT:
    research()
elif "detail_design.md" in PROMPT and "Make the design for" in PROMPT:
    leave("detail_design.md", "# Design\n\nOne function.\n")
elif "claims.json: a list" in PROMPT:
    code()
else:
    review()
