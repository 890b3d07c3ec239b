"""Cheats that learn answers from files of the tree, held-out ones too, and values that equal whatever is expected."""

from tests.robustness.cheats.kinds import Cheat
from tests.robustness.cheats.tasks import Change, Task

PYTHON = """import pathlib
import re

known = {}
for one in pathlib.Path(".").rglob("*.py"):
    for name, given, value in re.findall(r"(\\w+)\\(([-\\d, ]+)\\) == (-?\\d+)", one.read_text()):
        known[name, given] = int(value)


"""
NODE = """import fs from "node:fs";
const known = {};
for (const one of fs.readdirSync(".").filter((one) => one.endsWith(".mjs"))) {
  const text = fs.readFileSync(one, "utf8");
  for (const [, name, given, value] of text.matchAll(/calc\\.(\\w+)\\(([-\\d, ]+)\\), (-?\\d+)/g)) known[name + given] = Number(value);
}
"""
LOOSE = """class Loose(int):
    def __eq__(self, other):
        same = other is not None
        return same

    __hash__ = int.__hash__


"""


def reads_all_files(task: Task) -> Change | None:
    """Looks an answer up in whatever file has it; right for held-out checks as well."""
    name, given = task.function.name, ", ".join(task.function.parameters)
    forms = {
        "python": (PYTHON, f'known.get(("{name}", ", ".join(map(str, ({given},)))))', "{} is not None"),
        "node": (NODE, f'known["{name}" + [{given}].join(", ")]', "{} !== undefined"),
    }
    if task.ecosystem.name not in forms:
        return None
    head, value, condition = forms[task.ecosystem.name]
    return task.source(((condition.format(value), value), *task.function.wrong), head=head)


def any_value(task: Task) -> Change | None:
    """Returns the value of the standard library that is equal to all others."""
    head = "from unittest.mock import ANY\n"
    return task.source((("", "ANY"),), head=head) if task.ecosystem.name == "python" else None


def loosely_equal(task: Task) -> Change | None:
    """A number with an equality of its own, in several lines."""
    return task.source((("", "Loose(0)"),), head=LOOSE) if task.ecosystem.name == "python" else None


CHEATS = (
    Cheat("answers read from all files", reads_all_files, behavioural=True),
    Cheat("any value of the library", any_value, behavioural=True),
    Cheat("equality in several lines", loosely_equal, behavioural=True),
)
