"""What the rulings say about each text that walks use, written down by hand."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NAMES: Mapping[str, tuple[str, ...]] = {
    "do it": (),
    "rapid build of the guide": (),
    "wire the api": ("api_spec",),
    "extend userService": ("api_spec",),
    "登录接口": ("api_spec",),
    "draw the ui": ("design_spec",),
    "skeleton of the ui": ("design_spec",),
    "mock of the http client": ("api_spec",),
    "ui for the http client": ("api_spec", "design_spec"),
}
"""What progressive mode infers from a task's name, unless it is a skeleton's or a mock's, which need no design."""
FILES = {"": (), "src/a.py": (), "src/components/card.py": ("design_spec",), "src/api/client.py": ("api_spec",)}
FINDINGS = {
    "colour TBD": ("undecided", True),
    "颜色待定": ("undecided", True),
    "as it depends on the backend": ("depends_on", True),
    "kept in [redis?]": ("placeholder", True),
    "an index if needed": ("conditional", False),
    "logs, metrics, etc.": ("open_list", False),
    "maybe later": ("guess", False),
    "an appropriate size": ("vague", False),
    "FIXME": ("code_marker", False),
}
"""What the audit finds in a text, and whether it is an error."""
INTAKES = {
    "fix the typo": (0, ""),
    "store each order in the database": (0, "backend"),
    "now store each order in the database": (1, "backend"),
    "round the corners of each button there": (1, "frontend"),
    "show the new api field on the order page": (2, "both"),
    "rewrite the scheduler": (2, ""),
    "重写前端页面": (2, "frontend"),
}
"""How much a text asks for by itself, from trivial (0) to complex (3), and which side it is about."""


def inferred(task: Mapping[str, Any]) -> set[str]:
    """What progressive mode infers from a task."""
    found = {*NAMES.get(task["name"], ()), *(one for path in task["files"] for one in FILES.get(path, ()))}
    return found - {"design_spec"} if task["name"].startswith(("skeleton", "mock")) else found


def findings(tasks: Iterable[Mapping[str, Any]], constraints: Iterable[Mapping[str, str]]) -> list[tuple[str, bool]]:
    """What the audit finds, errors first."""
    found: list[tuple[str, bool]] = []
    for task in tasks:
        found += _in_text(task["id"], "name", task["name"])
        found += _in_text(task["id"], "requirement", task["requirement"])
        found += [] if task["actions"] else [(f"{task['id']}/actions/no_actions", True)]
        found += [] if task["files"] or task["requirement"] else [(f"{task['id']}/task/no_anchor", False)]
    for one in constraints:
        found += _in_text(one["id"], "description", one["text"])
    return sorted(found, key=lambda finding: not finding[1])


def _in_text(subject_id: str, field: str, text: str) -> Sequence[tuple[str, bool]]:
    if text not in FINDINGS:
        return ()
    rule, error = FINDINGS[text]
    return ((f"{subject_id}/{field}/{rule}", error),)


def collaboration(intake: str, tasks: int) -> tuple[str, str, int]:
    """How many models work together on this, who leads, and how many phases run in parallel."""
    size, side = INTAKES[intake]
    size = max(size, (tasks > 1) + (tasks > 3) + (tasks > 10))
    lead = {"backend": "codex", "frontend": "gemini"}.get(side, "claude") if size else ""
    return ("none", "single", "dual", "triple")[size], lead, (0, 0, 1, 3)[size]
