"""Adapters with the real runners of this machine."""

from pathlib import Path

import pytest

from pointsman.proof.adapters.instrument import SelectedTests
from tests.unit.proof.runners import PYTEST, UNITTEST, needs, outcomes, report, write

PYTEST_FILE = """
import pytest, sys
def test_good(): pass
def test_bad(): assert 1 == 2
@pytest.mark.skip
def test_later(): pass
@pytest.mark.xfail
def test_expected(): assert False
@pytest.fixture
def broken(): raise RuntimeError
def test_error(broken): pass
"""


def test_pytest_reports_every_test_from_outside_the_tree(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"test_it.py": PYTEST_FILE, "test_gone.py": "import nothing_of_that_name\n"})
    found, code = report(tree, PYTEST)
    assert code in {1, 2}
    assert found.complete
    assert outcomes(found)["test_gone.py"] == "error"
    (tree / "test_gone.py").unlink()
    again, _ = report(write(tmp_path / "other", {"test_it.py": PYTEST_FILE}), PYTEST)
    assert outcomes(again) == {
        "test_it.py::test_good": "passed",
        "test_it.py::test_bad": "failed",
        "test_it.py::test_later": "skipped",
        "test_it.py::test_expected": "xfailed",
        "test_it.py::test_error": "error",
    }
    assert {path.name for path in tree.iterdir()} - {"__pycache__"} == {"test_it.py"}


@pytest.mark.parametrize("trick", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_process_that_ends_without_its_report_has_not_passed(tmp_path: Path, trick: str) -> None:
    tree = write(tmp_path / "tree", {"test_it.py": f"import os\ndef test_a(): pass\ndef test_b(): {trick}\n"})
    found, _ = report(tree, PYTEST)
    assert not found.complete
    assert "ended before" in found.problem


def test_a_tree_cannot_switch_the_reporter_off(tmp_path: Path) -> None:
    tree = write(
        tmp_path / "tree",
        {"test_it.py": "def test_a(): pass\n", "pytest.ini": "[pytest]\naddopts = -p no:pointsman_pytest_n0\n"},
    )
    found, code = report(tree, PYTEST)
    assert (outcomes(found), code) == ({"test_it.py::test_a": "passed"}, 0)


def test_deselected_tests_are_named(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"test_it.py": PYTEST_FILE, "pytest.ini": "[pytest]\naddopts = -k good\n"})
    found, code = report(tree, PYTEST)
    assert code == 0
    assert outcomes(found)["test_it.py::test_bad"] == "deselected"


def test_selected_tests_run_alone_with_pytest(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"test_it.py": PYTEST_FILE})
    found, code = report(tree, PYTEST, selected=SelectedTests(ids=["test_it.py::test_good"]))
    assert (outcomes(found), code) == ({"test_it.py::test_good": "passed"}, 0)


def test_doctests_are_said_to_stand_in_sources(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"calc.py": '"""\n>>> 1 + 1\n2\n"""\n'})
    found, _ = report(tree, (*PYTEST, "--doctest-modules"))
    assert [(test.id, test.in_source) for test in found.tests.values()] == [("calc.py::calc", True)]


UNITTEST_FILE = """
import unittest
class TestIt(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.assertEqual(1, 2)
    def test_parts(self):
        for n in (1, 2):
            with self.subTest(n=n): self.assertEqual(n, 1)
    @unittest.skip("later")
    def test_later(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
"""


def test_unittest_reports_every_test_and_its_file(tmp_path: Path) -> None:
    found, code = report(write(tmp_path / "tree", {"test_it.py": UNITTEST_FILE}), UNITTEST)
    assert (found.complete, code) == (True, 1)
    assert outcomes(found) == {
        "test_it.TestIt.test_good": "passed",
        "test_it.TestIt.test_bad": "failed",
        "test_it.TestIt.test_parts": "failed",
        "test_it.TestIt.test_later": "skipped",
        "test_it.TestIt.test_expected": "xfailed",
        "test_it.TestIt.test_unexpected": "failed",
    }
    assert {test.file for test in found.tests.values()} == {"test_it.py"}


def test_unittest_keeps_its_arguments_and_names_files_that_do_not_load(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"checks/test_it.py": "import nothing_of_that_name\n", "test_no.py": "1 / 0\n"})
    found, code = report(tree, (*UNITTEST, "discover", "-s", "checks"))
    assert (outcomes(found), code) == ({"test_it": "error"}, 1)


def test_unittest_dying_has_not_passed(tmp_path: Path) -> None:
    text = "import os, unittest\nclass T(unittest.TestCase):\n    def test_a(self): os._exit(0)\n"
    found, code = report(write(tmp_path / "tree", {"test_it.py": text}), UNITTEST)
    assert (found.complete, code) == (False, 0)


NODE_FILE = """
import test, { describe, it } from "node:test";
import assert from "node:assert";
test("good", () => {});
test("bad", () => assert.equal(1, 2));
test.skip("later", () => {});
describe("group", () => { it("inner", () => {}); describe("deep", () => { it("bad", () => { throw new Error("x"); }); }); });
"""


def test_node_reports_every_test_from_the_process_that_starts_them(tmp_path: Path) -> None:
    needs("node")
    tree = write(
        tmp_path / "tree",
        {"a.test.mjs": NODE_FILE, "b.test.mjs": "process.exit(0)\n", "c.test.mjs": "import './none.mjs'\n"},
    )
    found, code = report(tree, ("node", "--test"))
    assert (found.complete, code) == (True, 1)
    assert outcomes(found) == {
        "a.test.mjs > good": "passed",
        "a.test.mjs > bad": "failed",
        "a.test.mjs > later": "skipped",
        "a.test.mjs > group > inner": "passed",
        "a.test.mjs > group > deep > bad": "failed",
        "c.test.mjs": "error",
    }


def test_node_is_found_behind_a_script_of_the_package(tmp_path: Path) -> None:
    needs("npm")
    scripts = {"test": "node --test"}
    tree = write(tmp_path / "tree", {"a.test.mjs": NODE_FILE, "package.json": '{"scripts": {"test": "node --test"}}'})
    found, _ = report(tree, ("npm", "test"), scripts)
    assert outcomes(found)["a.test.mjs > good"] == "passed"


GO_FILES = {
    "go.mod": "module example.com/x\n\ngo 1.21\n",
    "a_test.go": """package x
import ("testing"; "os")
func TestGood(t *testing.T) { t.Run("part", func(t *testing.T) {}) }
func TestBad(t *testing.T) { t.Fatal("no") }
func TestLater(t *testing.T) { t.Skip() }
var _ = os.Exit
""",
    "broken/b_test.go": "package broken\nfunc TestZ() { undefined() }\n",
}


def test_go_reports_tests_and_packages_that_do_not_compile(tmp_path: Path) -> None:
    needs("go")
    found, code = report(write(tmp_path / "tree", GO_FILES), ("go", "test", "./..."))
    assert (found.complete, code) == (True, 1)
    assert outcomes(found) == {
        "example.com/x.TestGood": "passed",
        "example.com/x.TestGood/part": "passed",
        "example.com/x.TestBad": "failed",
        "example.com/x.TestLater": "skipped",
        "example.com/x/broken": "error",
    }


CARGO_FILES = {
    "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """pub fn add(a: i32, b: i32) -> i32 { a + b }
#[cfg(test)]
mod tests {
    #[test] fn good() { assert_eq!(crate::add(1, 2), 3); }
    #[test] fn bad() { assert_eq!(crate::add(1, 2), 4); }
    #[test] #[ignore] fn later() {}
}
""",
    "tests/whole.rs": "#[test] fn works() {}\n",
}


def test_cargo_reports_the_tests_of_every_binary_after_a_failure_too(tmp_path: Path) -> None:
    needs("cargo")
    found, code = report(write(tmp_path / "tree", CARGO_FILES), ("cargo", "test", "--offline"))
    assert (found.complete, found.problem) == (True, "")
    assert code != 0
    assert outcomes(found) == {
        "calc:src/lib.rs::tests::good": "passed",
        "calc:src/lib.rs::tests::bad": "failed",
        "calc:src/lib.rs::tests::later": "skipped",
        "whole:tests/whole.rs::works": "passed",
    }


def test_a_cargo_test_that_leaves_early_has_not_reported(tmp_path: Path) -> None:
    needs("cargo")
    files = {**CARGO_FILES, "tests/whole.rs": "#[test] fn works() { std::process::exit(0) }\n"}
    found, _ = report(write(tmp_path / "tree", files), ("cargo", "test", "--offline"))
    assert not found.complete


def test_a_wrapper_passes_the_reporter_on_and_an_unknown_runner_counts_by_its_exit_code(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"test_it.py": "def test_a(): pass\n"})
    found, _ = report(tree, ("sh", "-c", " ".join(PYTEST)))
    assert outcomes(found) == {"test_it.py::test_a": "passed"}
    other, code = report(write(tmp_path / "other", {"x": ""}), ("true",))
    assert (other.exit_code_only, code) == (True, 0)
