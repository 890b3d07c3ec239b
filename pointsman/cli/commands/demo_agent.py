"""The demo's agent in every role: a script that plans, edits files and judges, and that does wrong what it can once.

It knows nothing of Pointsman but the contract of the command agent: the handoff folder, and the files to leave.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HANDOFF = Path(os.environ.get("POINTSMAN_HANDOFF", "."))
EXPORTS = Path("shop/__init__.py")
NAMES = {"T1": ("price", "total"), "T2": ("stock", "left"), "T3": ("receipt", "receipt")}
BODIES = {
    "T1": "def total(prices: list[int]) -> int:\n{doc}    return sum(prices)\n",
    "T2": "def left(stored: int, sold: int) -> int:\n{doc}    return max(0, stored - sold)\n",
    "T3": (
        "from shop.price import total\n\n\ndef receipt(prices: list[int]) -> str:\n"
        '{doc}    return f"{{len(prices)}} items, {{total(prices)}}"\n'
    ),
}
DOCS = {"T1": "What everything costs.", "T2": "What is left in the store.", "T3": "What the customer is given."}


def main() -> None:
    """Do what the prompt asks for."""
    prompt = (HANDOFF / "prompt.md").read_text()
    if "plan.schema.json" in prompt:
        plan()
    elif "decision.json" in prompt:
        review()
    else:
        code(json.loads((HANDOFF / "master_task.json").read_text())["task_id"])


def plan() -> None:
    """Three tasks: two that can be done at the same time, and one after them."""
    given = json.loads((HANDOFF / "request.json").read_text()).get("acceptance_criteria", [])
    tasks = [_task("T1", []), _task("T2", []), _task("T3", ["T1", "T2"])]
    tasks[-1]["acceptance_criteria"] += given
    _leave("plan.json", {"tasks": tasks, "confidence": 0.9})


def _task(task_id: str, depends: list[str]) -> dict[str, Any]:
    module, name = NAMES[task_id]
    tests = ["python3", "-m", "unittest", "-q", f"tests.test_{module}"]
    criterion = {"id": f"{task_id}-C1", "statement": f"{name}() does it", "verify_command": tests, "required": True}
    return {
        "id": task_id, "name": f"write {name}()", "actions": [f"write {name}() in shop/{module}.py"],
        "files": [f"shop/{module}.py"], "depends": depends, "size": "S", "acceptance_criteria": [criterion],
    }  # fmt: skip


def code(task_id: str) -> None:
    """Write the function, and export it, which no task says; the first try at T2 changes the test instead."""
    feedback = _feedback()
    if task_id == "T2" and not feedback:
        _lie()
        return
    module, name = NAMES[task_id]
    doc = "" if task_id == "T1" and "docstring" not in feedback else f'    """{DOCS[task_id]}"""\n'
    source = Path(f"shop/{module}.py")
    source.write_text(BODIES[task_id].format(doc=doc))
    EXPORTS.write_text(f"{EXPORTS.read_text()}from shop.{module} import {name} as {name}\n")
    _hand_in(task_id, [str(source), str(EXPORTS)])


def _lie() -> None:
    """Wrong code, and a test that is content with it."""
    wrong = f'    """{DOCS["T2"]}"""\n    return stored - sold\n'
    Path("shop/stock.py").write_text(f"def left(stored: int, sold: int) -> int:\n{wrong}")
    test = Path("tests/test_stock.py")
    test.write_text(test.read_text().replace("left(3, 5), 0", "left(3, 5), -2"))
    _hand_in("T2", ["shop/stock.py", str(test)])


def _feedback() -> str:
    """What judges and the verifier said about earlier tries."""
    task = json.loads((HANDOFF / "master_task.json").read_text())
    said = [*task.get("rejections", []), *task.get("reflections", [])]
    context = HANDOFF / "node_context.json"
    retry = json.loads(context.read_text()).get("retryContext") if context.exists() else None
    return "\n".join([*said, json.dumps(retry) if retry else ""]).strip()


def _hand_in(task_id: str, changed: list[str]) -> None:
    criteria = [item["id"] for item in json.loads((HANDOFF / "acceptance_criteria.json").read_text())]
    tests = ["python3", "-m", "unittest", "-q", f"tests.test_{NAMES[task_id][0]}"]
    subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", *tests], check=False)  # noqa: S603, S607
    statement = f"{NAMES[task_id][1]}() does it, and its test passes"
    _leave("claims.json", [{"id": "CL1", "statement": statement, "criterion_ids": criteria, "evidence_ids": ["E1"]}])
    _leave("changed_files.json", [{"path": path, "change": "MODIFIED"} for path in changed])


def review() -> None:
    """Send back a function without a docstring; pass everything else."""
    task_id = json.loads((HANDOFF / "master_task.json").read_text())["task_id"]
    module, name = NAMES[task_id]
    if '"""' in Path(f"shop/{module}.py").read_text():
        _leave("decision.json", {"decision": "pass"})
        return
    statement = f"{name}() has no docstring: say what it is for"
    _leave("decision.json", {"decision": "retry", "feedback": [{"key": "docstring", "statement": statement}]})


def _leave(name: str, value: object) -> None:
    (HANDOFF / name).write_text(json.dumps(value))


if __name__ == "__main__":
    main()
