"""Proofs of small deliveries, true ones and cheats, with real processes."""

from pathlib import Path

import pytest

from pointsman.proof.verdict import Decision, Grade, Wishes
from tests.unit.proof.deliveries import CALC, FIXED, PYTEST, prove

GREEN = {**CALC, **FIXED}
TEST_HALF = """import unittest

from calc import half


class TestHalf(unittest.TestCase):
    def test_half(self):
        self.assertEqual(half(4), 2)
"""


async def test_a_true_fix_is_proven(tmp_path: Path) -> None:
    proof = await prove(tmp_path, CALC, FIXED)
    assert (proof.verdict.decision, proof.verdict.grade) == (Decision.ACCEPTED, Grade.PROVEN)
    assert "test_calc.TestCalc.test_add" in proof.verdict.reasons[0]


EMPTY = "import unittest\nclass TestCalc(unittest.TestCase):\n    def test_add(self): pass\n    def test_double(self): pass\n"
CHEATS: dict[str, dict[str, str | None]] = {
    "the test is deleted": {"test_calc.py": None},
    "the test is emptied": {"test_calc.py": EMPTY},
    "the test is skipped": {
        "test_calc.py": EMPTY.replace("    def test_add", "    @unittest.skip('')\n    def test_add")
    },
}
ADD = "test_calc.TestCalc.test_add"


@pytest.mark.parametrize("cheat", CHEATS)
async def test_a_cheat_in_tests_fixes_nothing(tmp_path: Path, cheat: str) -> None:
    proof = await prove(
        tmp_path, CALC, {**CHEATS[cheat], "calc.py": CALC["calc.py"] + "\n# fixed\n"}, wishes=Wishes((ADD,))
    )
    assert proof.verdict.decision is Decision.REFUSED
    assert proof.plan.protected


@pytest.mark.parametrize("cheat", CHEATS)
async def test_a_red_test_that_only_its_author_turned_green_is_refused(tmp_path: Path, cheat: str) -> None:
    verdict = (await prove(tmp_path, CALC, {**CHEATS[cheat], "calc.py": CALC["calc.py"] + "\n# fixed\n"})).verdict
    assert verdict.decision is Decision.REFUSED
    assert any("only the author's changes of tests hide it" in reason for reason in verdict.reasons)


BREAKING = GREEN["calc.py"].replace("a * 2", "a * 3")


@pytest.mark.parametrize("cheat", CHEATS)
async def test_a_cheat_in_tests_hides_no_regression(tmp_path: Path, cheat: str) -> None:
    proof = await prove(tmp_path, GREEN, {**CHEATS[cheat], "calc.py": BREAKING})
    assert proof.verdict.decision is Decision.REFUSED
    assert any("TestCalc.test_double" in reason for reason in proof.verdict.reasons)


SETTINGS: dict[str, dict[str, str | None]] = {
    "the test is deselected": {"pytest.ini": "[pytest]\naddopts = -k add\n"},
    "a conftest makes everything pass": {
        "conftest.py": "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    r = yield\n    r.get_result().outcome = 'passed'\n"
    },
    "the project's settings leave it out": {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-k add'\n"},
}


@pytest.mark.parametrize("cheat", SETTINGS)
async def test_settings_of_the_runner_hide_no_regression(tmp_path: Path, cheat: str) -> None:
    proof = await prove(tmp_path, GREEN, {**SETTINGS[cheat], "calc.py": BREAKING}, [PYTEST])
    assert proof.verdict.decision is Decision.REFUSED


IN_SOURCES: dict[str, str] = {
    "the module ends the process": "import os\nos._exit(0)\n",
    "the module ends it at exit": CALC["calc.py"] + "import atexit, os\natexit.register(lambda: os._exit(0))\n",
    "the module rewrites its test": CALC["calc.py"]
    + "import pathlib\npathlib.Path('test_calc.py').write_text('# nothing')\n",
}


@pytest.mark.parametrize("cheat", IN_SOURCES)
async def test_a_cheat_in_sources_is_not_accepted(tmp_path: Path, cheat: str) -> None:
    proof = await prove(tmp_path, CALC, {"calc.py": IN_SOURCES[cheat]}, wishes=Wishes((ADD,)))
    assert proof.verdict.decision is not Decision.ACCEPTED


REFUSED: dict[str, dict[str, str | None]] = {
    "runner shadowed": {"pytest.py": "raise SystemExit(0)\n"},
    "package shadowed": {"_pytest/__init__.py": ""},
    "start-up code": {"sitecustomize.py": "import os; os._exit(0)\n"},
    "plugin by metadata": {
        "x.dist-info/entry_points.txt": "[pytest11]\nx = calc\n",
        "x.dist-info/METADATA": "Name: x\n",
    },
    "link out of the tree": {"data": "-> /dev/shm/data"},
    "link up and out": {"a/b": "-> ../../x"},
    "bytecode": {"__pycache__/calc.cpython-311.pyc": "x"},
    "installed programs": {"node_modules/.bin/jest": "#!/bin/sh\n"},
}


@pytest.mark.parametrize("tree", REFUSED)
async def test_a_tree_that_could_stand_for_its_judge_is_refused_before_anything_runs(tmp_path: Path, tree: str) -> None:
    proof = await prove(tmp_path, CALC, {**FIXED, **REFUSED[tree]})
    assert proof.verdict.decision is Decision.REFUSED
    assert proof.commands == ()
    assert any(path in reason for path in REFUSED[tree] for reason in proof.verdict.reasons)


async def test_a_link_inside_the_tree_and_a_module_of_a_package_are_fine(tmp_path: Path) -> None:
    change = {**FIXED, "README": "-> calc.py", "pkg/__init__.py": "", "pkg/json.py": "x = 1\n"}
    assert (await prove(tmp_path, CALC, change)).verdict.grade is Grade.PROVEN


async def test_a_feature_with_its_own_tests_is_unbroken_and_red_before_green(tmp_path: Path) -> None:
    change = {
        "calc.py": GREEN["calc.py"] + "\n\ndef half(a):\n    return a / 2\n",
        "test_half.py": TEST_HALF,
    }
    verdict = (await prove(tmp_path, GREEN, change)).verdict
    assert (verdict.decision, verdict.grade) == (Decision.ACCEPTED, Grade.UNBROKEN)
    assert any(
        "fail on the base's sources and pass now: test_half.TestHalf.test_half" in reason for reason in verdict.reasons
    )
    assert verdict.risks == ()


async def test_new_tests_that_pass_on_the_base_show_nothing(tmp_path: Path) -> None:
    change = {
        "calc.py": GREEN["calc.py"] + "\n\ndef half(a):\n    return 0\n",
        "test_half.py": EMPTY,
    }
    verdict = (await prove(tmp_path, GREEN, change)).verdict
    assert (verdict.decision, verdict.grade) == (Decision.ACCEPTED, Grade.UNBROKEN)
    assert any("pass on the base as well" in risk for risk in verdict.risks)


async def test_a_refactoring_is_unbroken_and_says_that_nothing_shows_it(tmp_path: Path) -> None:
    verdict = (await prove(tmp_path, GREEN, {"calc.py": GREEN["calc.py"].replace("a * 2", "a + a")})).verdict
    assert (verdict.decision, verdict.grade) == (Decision.ACCEPTED, Grade.UNBROKEN)
    assert verdict.risks == ("no test shows what was changed",)


async def test_where_nothing_was_changed_the_proof_says_so(tmp_path: Path) -> None:
    verdict = (await prove(tmp_path, GREEN, {})).verdict
    assert (verdict.grade, verdict.risks) == (Grade.UNBROKEN, ("nothing was changed",))


async def test_documents_alone_need_no_test_and_tests_alone_need_a_yes(tmp_path: Path) -> None:
    verdict = (await prove(tmp_path, GREEN, {"README.md": "# calc\n"})).verdict
    assert (verdict.decision, verdict.grade, verdict.risks) == (Decision.ACCEPTED, Grade.UNBROKEN, ())
    (tmp_path / "other").mkdir()
    more = {"test_more.py": EMPTY}
    verdict = (await prove(tmp_path / "other", GREEN, more)).verdict
    assert (verdict.decision, verdict.grade) == (Decision.ASKED, Grade.ON_WORD)


async def test_a_half_finished_plan_goes_on_with_red_tests(tmp_path: Path) -> None:
    verdict = (
        await prove(tmp_path, CALC, {"calc.py": CALC["calc.py"] + "\n\ndef half(a):\n    return a / 2\n"})
    ).verdict
    assert verdict.decision is Decision.ACCEPTED
    assert any("fail as they did on the base" in risk for risk in verdict.risks)


async def test_tests_that_may_change_are_shown_to_somebody(tmp_path: Path) -> None:
    change = {"calc.py": BREAKING, "test_calc.py": CALC["test_calc.py"].replace("double(2), 4", "double(2), 6")}
    refused = (await prove(tmp_path, GREEN, change)).verdict
    assert refused.decision is Decision.REFUSED
    (tmp_path / "other").mkdir()
    asked = (await prove(tmp_path / "other", GREEN, change, wishes=Wishes(tests_may_change=True))).verdict
    assert asked.decision is Decision.ASKED
    assert any("TestCalc.test_double" in question for question in asked.questions)


async def test_held_out_checks_prove_and_refuse_without_being_named(tmp_path: Path) -> None:
    hidden = {"test_hidden.py": TEST_HALF.replace("half(4), 2", "add(20, 22), 42").replace("half", "add")}
    wishes = Wishes(held_out_files=("test_hidden.py",))
    special = {"calc.py": CALC["calc.py"].replace("return a - b", "return 3")}
    refused = (await prove(tmp_path, CALC, special, held_out=hidden, wishes=wishes)).verdict
    assert refused.decision is Decision.REFUSED
    assert refused.reasons == ("held-out check 1 of 1 failed",)
    (tmp_path / "other").mkdir()
    proven = (
        await prove(tmp_path / "other", GREEN, {"calc.py": GREEN["calc.py"] + "# x\n"}, held_out=hidden, wishes=wishes)
    ).verdict
    assert (proven.decision, proven.grade) == (Decision.ACCEPTED, Grade.PROVEN)
    assert "test_add" not in str(proven).replace(ADD, "")


async def test_a_project_without_tests_asks(tmp_path: Path) -> None:
    verdict = (await prove(tmp_path, {"calc.py": "x = 1\n"}, {"calc.py": "x = 2\n"})).verdict
    assert (verdict.decision, verdict.grade) == (Decision.ASKED, Grade.ON_WORD)


FLAKY = """import pathlib
import unittest


class TestFlaky(unittest.TestCase):
    def test_flaky(self):
        seen = pathlib.Path(__file__).parent.parent.name.startswith("2-")
        self.assertFalse(seen)
"""


async def test_a_test_that_fails_once_is_run_again_and_named_as_an_open_risk(tmp_path: Path) -> None:
    proof = await prove(tmp_path, {**CALC, "test_flaky.py": FLAKY}, FIXED)
    assert (proof.verdict.decision, proof.verdict.grade) == (Decision.ACCEPTED, Grade.PROVEN)
    assert any("passed when run again: test_flaky.TestFlaky.test_flaky" in risk for risk in proof.verdict.risks)


async def test_an_unknown_runner_is_one_test_with_an_open_risk(tmp_path: Path) -> None:
    base = {"x.txt": "0\n", "check.sh": "grep -q 1 x.txt\n"}
    proven = (await prove(tmp_path, base, {"x.txt": "1\n"}, [("sh", "check.sh")])).verdict
    assert (proven.decision, proven.grade) == (Decision.ACCEPTED, Grade.PROVEN)
    assert any("exit code only" in risk for risk in proven.risks)
    (tmp_path / "other").mkdir()
    cheat = (
        await prove(
            tmp_path / "other",
            base,
            {"check.sh": "true\n", "y": ""},
            [("sh", "check.sh")],
            Wishes(fixes=("sh check.sh",)),
        )
    ).verdict
    assert cheat.decision is Decision.REFUSED


async def test_a_moved_test_file_loses_nothing(tmp_path: Path) -> None:
    change: dict[str, str | None] = {
        **FIXED,
        "test_calc.py": None,
        "checks/test_calc.py": CALC["test_calc.py"],
        "checks/__init__.py": "",
    }
    verdict = (await prove(tmp_path, CALC, change)).verdict
    assert (verdict.decision, verdict.grade) == (Decision.ACCEPTED, Grade.PROVEN)
    assert not any("removed" in risk for risk in verdict.risks)


async def test_a_test_file_that_did_not_load_on_the_base_proves_when_it_does(tmp_path: Path) -> None:
    base = {**GREEN, "test_half.py": TEST_HALF}
    verdict = (
        await prove(tmp_path, base, {"calc.py": GREEN["calc.py"] + "\n\ndef half(a):\n    return a / 2\n"})
    ).verdict
    assert (verdict.decision, verdict.grade) == (Decision.ACCEPTED, Grade.PROVEN)
