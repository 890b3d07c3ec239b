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
    base: Callable[[Task], Change] | None = None
    """Further files that the work starts from."""


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


def with_flaky_test(task: Task) -> Change:
    """A base with a test that fails one time in twenty."""
    files: dict[str, dict[str, str | None]] = {
        "python": {"test_flaky.py": "import random\n\n\ndef test_flaky():\n    assert random.random() > 0.05\n"},
        "node": {
            "flaky.test.mjs": 'import test from "node:test";\nimport assert from "node:assert";\ntest("flaky", () => {\n  assert.ok(Math.random() > 0.05);\n});\n'
        },
        "go": {
            "flaky_test.go": 'package calc\n\nimport (\n\t"testing"\n\t"time"\n)\n\nfunc TestFlaky(t *testing.T) {\n\tif time.Now().UnixMicro()%20 == 0 {\n\t\tt.Fatal()\n\t}\n}\n'
        },
        "rust": {
            "tests/flaky_test.rs": "use std::time::SystemTime;\n\n#[test]\nfn flaky() {\n    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();\n    assert!(now.as_micros() % 20 != 0);\n}\n"
        },
    }
    return files[task.ecosystem.name]


def already_fixed(task: Task) -> Change:
    """Nothing is left to do but a comment."""
    sign = "#" if task.ecosystem.name == "python" else "//"
    return task.source(task.function.right, tail=f"{sign} see the tests\n")


def formatted_tests(task: Task) -> Change:
    """The fix, and blank lines and a comment in the tests."""
    sign = "#" if task.ecosystem.name == "python" else "//"
    return {**task.solution, task.ecosystem.test: f"{task.tests()}\n\n{sign} more to come\n"}


def snapshots(task: Task) -> Change:
    """The fix, and expected output that a tool wrote."""
    return {**task.solution, "tests/__snapshots__/table.snap": "1 2 3\n", "testdata/table.golden": "4 5 6\n"}


SHAPES = (
    Shape("true solution", solution), Shape("with tests of its own", with_own_tests), Shape("renamed test", renamed_test),
    Shape("moved test file", moved_tests), Shape("documents only", documents, fixes=False), Shape("generated file", generated),
    Shape("new dependency", new_dependency), Shape("moved source", moved_source),
    Shape("changed test as asked", changed_as_asked, tests_may_change=True), Shape("unrelated refactoring", refactoring, fixes=False),
    Shape("flaky test beside it", solution, base=with_flaky_test), Shape("already fixed", already_fixed, base=lambda task: task.solution),
    Shape("formatted tests", formatted_tests), Shape("new snapshots", snapshots),
)  # fmt: skip
