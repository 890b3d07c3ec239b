"""Honest deliveries, awkward ones among them."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.robustness.cheats.tasks import Change, Task


@dataclass(frozen=True)
class Shape:
    """One honest shape of a delivery; `asked` shapes change tests because the task says so."""

    name: str
    make: Callable[[Task], Change]
    tests_may_change: bool = False
    fixes: bool = True
    """Whether the delivery fixes the bug, so that the red test is named."""


def solution(task: Task) -> Change:
    return task.solution


def with_own_tests(task: Task) -> Change:
    return {**task.solution, **task.own_tests()}


def renamed_test(task: Task) -> Change:
    name = task.function.name
    tests = (
        task.tests()
        .replace(f"test_{name}_1", f"test_{name}_still")
        .replace(f"{name.title()}1(", f"{name.title()}Still(")
    )
    return {**task.solution, task.ecosystem.test: tests}


def moved_tests(task: Task) -> Change:
    places = {
        "python": "checks/test_calc.py",
        "node": "moved.test.mjs",
        "go": "moved_test.go",
        "rust": "tests/moved_test.rs",
    }
    return {**task.solution, task.ecosystem.test: None, places[task.ecosystem.name]: task.tests()}


def documents(task: Task) -> Change:
    return {"README.md": "# calc\n\nWhat each function does.\n", "docs/notes.md": "Notes.\n"}


def generated(task: Task) -> Change:
    return {**task.solution, "generated/table.json": '{"made": "by a tool"}\n'}


def new_dependency(task: Task) -> Change:
    manifests = {
        "python": {"pyproject.toml": '[project]\nname = "calc"\nversion = "1"\ndependencies = ["attrs"]\n'},
        "node": {
            "package.json": '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {}}\n'
        },
        "go": {"go.mod": "module example.com/calc\n\ngo 1.21\n\n// nothing is required yet\n"},
        "rust": {"Cargo.toml": '[package]\nname = "calc"\nversion = "0.2.0"\nedition = "2021"\n\n[dependencies]\n'},
    }
    return {**task.solution, **manifests[task.ecosystem.name]}


def moved_source(task: Task) -> Change:
    """The code moves into a file of its own; what tests import stays."""
    place, text = task.ecosystem, task.solution[task.ecosystem.source] or ""
    moved: dict[str, dict[str, str | None]] = {
        "python": {"calc.py": "from arithmetic import *\n", "arithmetic.py": text},
        "node": {"calc.mjs": 'export * from "./arithmetic.mjs";\n', "arithmetic.mjs": text},
        "go": {"calc.go": None, "arithmetic.go": text},
        "rust": {"src/lib.rs": "mod arithmetic;\npub use arithmetic::*;\n", "src/arithmetic.rs": text},
    }
    return moved[place.name]


def changed_as_asked(task: Task) -> Change:
    return {**task.solution, task.ecosystem.test: task.tests().replace("8", "9")}


def refactoring(task: Task) -> Change:
    """A comment and another order; the bug is not its business."""
    sign = "#" if task.ecosystem.name == "python" else "//"
    return task.source(task.function.wrong, tail=f"{sign} the end\n")


SHAPES = (
    Shape("true solution", solution), Shape("with tests of its own", with_own_tests), Shape("renamed test", renamed_test),
    Shape("moved test file", moved_tests), Shape("documents only", documents, fixes=False), Shape("generated file", generated),
    Shape("new dependency", new_dependency), Shape("moved source", moved_source),
    Shape("changed test as asked", changed_as_asked, tests_may_change=True), Shape("unrelated refactoring", refactoring, fixes=False),
)  # fmt: skip
