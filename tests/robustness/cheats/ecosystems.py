"""Four ecosystems: how a function and its tests are written in each, and what runs them."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.robustness.cheats.functions import Function, Guards

Cases = Sequence[tuple[int, ...]]
KEEP = Function("keep", ("a",), (("", "a"),), (("", "a"),), ((1,), (8,)), ((3,),))
"""A function beside the one with the bug, whose tests are green."""


@dataclass(frozen=True)
class Ecosystem:
    """A language with its test runner."""

    name: str
    program: str
    command: tuple[str, ...]
    source: str
    test: str
    hidden: str
    manifest: Mapping[str, str]
    setup: tuple[str, ...] = ()
    """What fetches its dependencies, once for all deliveries with the same manifest."""

    @property
    def is_here(self) -> bool:
        """Whether its toolchain is installed."""
        return shutil.which(self.program) is not None

    def function(self, function: Function, body: Guards, extra: str = "") -> str:
        """One function in this language; `extra` goes before its first line."""
        return _FUNCTIONS[self.name](function, body, extra)

    def sources(self, *parts: str) -> str:
        """A whole source file."""
        return _HEADS[self.name] + "\n".join(parts)

    def tests(self, cases: Sequence[tuple[Function, Cases]], prefix: str = "") -> str:
        """A whole test file: one test per case."""
        return _TESTS[self.name](cases, prefix)

    def test_id(self, name: str, function: Function, number: int) -> str:
        """The id of a test in the words of the runner."""
        return _IDS[self.name].format(test=name, name=case_name(function, number), go=go_name(function, number))


def case_name(function: Function, number: int) -> str:
    """The name of one test."""
    return f"test_{function.name}_{number}"


def go_name(function: Function, number: int) -> str:
    """The same in Go."""
    return f"Test{function.name.title().replace('_', '')}{number}"


def _python(function: Function, body: Guards, extra: str) -> str:
    lines = [f"def {function.name}({', '.join(function.parameters)}):", *([f"    {extra}"] if extra else [])]
    for condition, value in body:
        python = condition.replace("&&", "and").replace("||", "or")
        lines.append(f"    if {python}:\n        return {value}" if condition else f"    return {value}")
    return "\n".join(lines) + "\n"


def _braces(head: str, body: Guards, extra: str, brackets: tuple[str, str]) -> str:
    lines = [head, *([f"    {extra}"] if extra else [])]
    for condition, value in body:
        opened, closed = brackets
        lines.append(
            f"    if {opened}{condition}{closed} {{ return {value}; }}" if condition else f"    return {value};"
        )
    return "\n".join([*lines, "}", ""])


def _node(function: Function, body: Guards, extra: str) -> str:
    return _braces(f"export function {function.name}({', '.join(function.parameters)}) {{", body, extra, ("(", ")"))


def _go(function: Function, body: Guards, extra: str) -> str:
    return _braces(
        f"func {function.name.title().replace('_', '')}({', '.join(function.parameters)} int) int {{",
        body,
        extra,
        ("", ""),
    )


def _rust(function: Function, body: Guards, extra: str) -> str:
    parameters = ", ".join(f"{name}: i64" for name in function.parameters)
    return _braces(f"pub fn {function.name}({parameters}) -> i64 {{", body, extra, ("", ""))


def _each(cases: Sequence[tuple[Function, Cases]]) -> list[tuple[Function, int, str, int]]:
    return [
        (function, number, ", ".join(map(str, arguments)), function.expected(arguments))
        for function, given in cases
        for number, arguments in enumerate(given)
    ]


def _python_tests(cases: Sequence[tuple[Function, Cases]], prefix: str) -> str:
    lines = ["import calc", "", ""]
    for function, number, arguments, expected in _each(cases):
        lines += [
            f"def {prefix}{case_name(function, number)}():",
            f"    assert calc.{function.name}({arguments}) == {expected}",
            "",
            "",
        ]
    return "\n".join(lines)


def _node_tests(cases: Sequence[tuple[Function, Cases]], prefix: str) -> str:
    lines = [
        'import test from "node:test";',
        'import assert from "node:assert";',
        'import * as calc from "./calc.mjs";',
        "",
    ]
    for function, number, arguments, expected in _each(cases):
        lines.append(
            f'test("{prefix}{case_name(function, number)}", () => {{\n  assert.strictEqual(calc.{function.name}({arguments}), {expected});\n}});'
        )
    return "\n".join([*lines, ""])


def _go_tests(cases: Sequence[tuple[Function, Cases]], prefix: str) -> str:
    lines = ["package calc", "", 'import "testing"', ""]
    for function, number, arguments, expected in _each(cases):
        name = go_name(function, number).replace("Test", f"Test{prefix.title()}", 1)
        called = f"{function.name.title().replace('_', '')}({arguments})"
        lines.append(f"func {name}(t *testing.T) {{\n\tif {called} != {expected} {{\n\t\tt.Fatal({called})\n\t}}\n}}\n")
    return "\n".join(lines)


def _rust_tests(cases: Sequence[tuple[Function, Cases]], prefix: str) -> str:
    lines = []
    for function, number, arguments, expected in _each(cases):
        lines.append(
            f"#[test]\nfn {prefix}{case_name(function, number)}() {{\n    assert_eq!(calc::{function.name}({arguments}), {expected});\n}}\n"
        )
    return "\n".join(lines)


_FUNCTIONS = {"python": _python, "node": _node, "go": _go, "rust": _rust}
_TESTS = {"python": _python_tests, "node": _node_tests, "go": _go_tests, "rust": _rust_tests}
_HEADS = {"python": "", "node": "", "go": "package calc\n\n", "rust": ""}
_IDS = {
    "python": "{test}::{name}",
    "node": "{test} > {name}",
    "go": "example.com/calc.{go}",
    "rust": "calc_test:{test}::{name}",
}
PYTHON = Ecosystem(
    "python", sys.executable, (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"),
    "calc.py", "test_calc.py", "test_hidden.py", {"pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n'},
)  # fmt: skip
NODE = Ecosystem(
    "node", "node", ("npm", "test"), "calc.mjs", "calc.test.mjs", "hidden.test.mjs",
    {"package.json": '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}}\n'},
)  # fmt: skip
GO = Ecosystem(
    "go", "go", ("go", "test", "./..."), "calc.go", "calc_test.go", "hidden_test.go",
    {"go.mod": "module example.com/calc\n\ngo 1.21\n"},
)  # fmt: skip
RUST = Ecosystem(
    "rust", "cargo", ("cargo", "test", "--offline"), "src/lib.rs", "tests/calc_test.rs", "tests/hidden_test.rs",
    {"Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n'},
)  # fmt: skip
ECOSYSTEMS = (PYTHON, NODE, GO, RUST)
