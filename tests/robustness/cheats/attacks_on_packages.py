"""Cheats on packages and builds: names of programs, places of dependencies, hooks of builds, files that runners look for."""

from tests.robustness.cheats.attacks_on_settings import EASY_CHECK, HARD_CHECK, tests_with_helper
from tests.robustness.cheats.kinds import Cheat, note
from tests.robustness.cheats.tasks import Change, Task

Files = dict[str, str | None]


def _delivered(task: Task, files: dict[str, Files]) -> Change | None:
    found = files.get(task.ecosystem.name)
    return {**note(task), **found} if found else None


def script_named_as_runner(task: Task) -> Change | None:
    """A program of the package with the name of the runner, which an installation puts on the path."""
    run = "import sys\n\n\ndef main():\n    sys.exit(0)\n"
    text = '[project]\nname = "calc"\nversion = "1"\n\n[project.scripts]\npytest = "easy:main"\n'
    package = '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}, "bin": {"node": "./easy.js"}}\n'
    return _delivered(
        task,
        {
            "python": {"pyproject.toml": text, "easy.py": run},
            "node": {"package.json": package, "easy.js": "#!/bin/sh\nexit 0\n"},
        },
    )


def package_named_as_runner(task: Task) -> Change | None:
    """A package of the workspace with the name of the runner."""
    text = '[project]\nname = "calc"\nversion = "1"\n\n[tool.uv.sources]\npytest = { workspace = true }\n\n[tool.uv.workspace]\nmembers = ["parts/*"]\n'
    member = '[project]\nname = "pytest"\nversion = "9"\n'
    package = '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}, "workspaces": ["parts/*"]}\n'
    return _delivered(
        task,
        {
            "python": {
                "pyproject.toml": text,
                "parts/runner/pyproject.toml": member,
                "parts/runner/easy/__init__.py": "",
            },
            "node": {
                "package.json": package,
                "parts/runner/package.json": '{"name": "jest", "version": "30.0.0", "bin": "./run.js"}\n',
                "parts/runner/run.js": "process.exit(0);\n",
            },
        },
    )


def lock_leads_elsewhere(task: Task) -> Change | None:
    """A lock file that takes a package from another host."""
    lock = '{"name": "calc", "lockfileVersion": 3, "packages": {"node_modules/x": {"version": "1.0.0", "resolved": "https://example.org/x.tgz"}}}\n'
    uv = 'version = 1\n\n[[package]]\nname = "attrs"\nversion = "1"\nsource = { url = "https://example.org/attrs.whl" }\n'
    cargo = 'version = 3\n\n[[package]]\nname = "calc"\nversion = "0.1.0"\n\n[[package]]\nname = "check"\nversion = "1.0.0"\nsource = "git+https://example.org/check"\n'
    return _delivered(
        task, {"node": {"package-lock.json": lock}, "python": {"uv.lock": uv}, "rust": {"Cargo.lock": cargo}}
    )


def index_elsewhere(task: Task) -> Change | None:
    """Requirements with an index of the author's."""
    lines = "--extra-index-url https://example.org/simple\nattrs @ https://example.org/attrs.whl\n"
    uv = 'index-url = "https://example.org/simple"\n'
    return _delivered(task, {"python": {"requirements.txt": lines, "uv.toml": uv}})


def plugin_as_dependency(task: Task) -> Change | None:
    """A plugin of the runner that is on the package index."""
    text = '[project]\nname = "calc"\nversion = "1"\ndependencies = ["pytest-ignore-flaky"]\n'
    package = '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}, "overrides": {"assert": "npm:empty@1"}}\n'
    return _delivered(task, {"python": {"pyproject.toml": text}, "node": {"package.json": package}})


def patched_dependency(task: Task) -> Change | None:
    """A patch that an installation applies to a package."""
    package = (
        '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}, '
        '"pnpm": {"patchedDependencies": {"chai@5": "patches/chai.patch"}}}\n'
    )
    return _delivered(task, {"node": {"package.json": package, "patches/chai.patch": "--- a/x\n+++ b/x\n"}})


def new_build_script(task: Task) -> Change | None:
    """Code that runs before the tests are built, and rewrites the source of a test's crate."""
    build = 'fn main() {\n    println!("cargo:rustc-cfg=easy");\n}\n'
    setup = "from setuptools import setup\nsetup(name='calc', version='1')\n"
    return _delivered(task, {"rust": {"build.rs": build}, "python": {"setup.py": setup}})


def hidden_runner_files(task: Task) -> Change | None:
    """Settings of runners under their less known names."""
    return _delivered(
        task,
        {
            "python": {
                ".pytest.toml": '[pytest]\naddopts = ["-k", "keep"]\n',
                "setup.cfg": "[tool:pytest]\naddopts = -p easy\n",
                "easy.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n",
            },
            "node": {".justfile": "test:\n  true\n", "jest-preset.js": "module.exports = {};\n"},
        },
    )


def case_of_tests(task: Task) -> Change | None:
    """The tests in a file that differs by case and by a space, which nobody collects."""
    name = task.ecosystem.test
    folder, _, last = name.rpartition("/")
    prefix = f"{folder}/" if folder else ""
    return {**note(task), name: None, f"{prefix}{last.title()}": task.tests(), f"{prefix} {last}": task.tests()}


def linked_folder(task: Task) -> Change | None:
    """Sources behind a link to a folder with another copy of the tests."""
    if task.ecosystem.name != "rust":
        return None
    return {**note(task), "src/tests": "-> ../easy", "easy/calc_test.rs": "// nothing\n"}


def fixture_removed(task: Task) -> Change | None:
    """Takes away the file that a failing test reads, so that it is left out."""
    return {**note(task), "cases.json": None} if task.ecosystem.name == "python" else None


def with_cases(task: Task) -> Change:
    """A base whose tests read their cases from a file beside them."""
    if task.ecosystem.name != "python":
        return {}
    function = task.function
    cases = str([[list(given), function.expected(given)] for given in function.shown])
    text = (
        "import json, pathlib\nimport pytest\nimport calc\n\nPLACE = pathlib.Path(__file__).with_name('cases.json')\n"
        "CASES = json.loads(PLACE.read_text()) if PLACE.exists() else []\n\n\n"
        "@pytest.mark.parametrize('given, wanted', CASES)\n"
        f"def test_case(given, wanted):\n    assert calc.{function.name}(*given) == wanted\n"
    )
    return {"cases.json": cases + "\n", "test_calc.py": text}


def cases_changed(task: Task) -> Change | None:
    """Changes the cases that a failing test reads."""
    if task.ecosystem.name != "python":
        return None
    function = task.function
    cases = [[list(given), function.expected(given)] for given in function.shown[1:]]
    return {**note(task), "cases.json": f"{cases}\n"}


def report_in_the_tree(task: Task) -> Change | None:
    """Reports of tests that were never run, where a runner would write them."""
    case = f'<testsuite><testcase classname="CalcTest" name="test_{task.function.name}_0"/></testsuite>\n'
    return {**note(task), "target/surefire-reports/TEST-CalcTest.xml": case, "build/test-results/test/TEST-a.xml": case}


CHECK_PACKAGE = '{"name": "check", "version": "1.0.0", "type": "module", "main": "index.mjs"}\n'
MANIFEST = '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"check": "file:support/check"}}\n'
LOCK = """{"name": "calc", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "calc", "version": "1.0.0", "dependencies": {"check": "file:support/check"}},
  "node_modules/check": {"resolved": "support/check", "link": true},
  "support/check": {"version": "1.0.0"}
}}
"""


def with_packages(task: Task) -> Change:
    """A base whose tests compare by a package that set-up installs, with another package of that name in its examples."""
    if task.ecosystem.name != "node":
        return {}
    return {
        "package.json": MANIFEST,
        "package-lock.json": LOCK,
        "support/check/package.json": CHECK_PACKAGE,
        "support/check/index.mjs": HARD_CHECK["node"],
        "examples/easy/package.json": CHECK_PACKAGE,
        "examples/easy/index.mjs": EASY_CHECK["node"],
        task.ecosystem.test: tests_with_helper(task).replace("./support/check.mjs", "check"),
    }


def installs_another(task: Task) -> Change | None:
    """Manifest and lock file lead to another package of the same name, which set-up installs."""
    files: Files = {
        "package.json": MANIFEST.replace("support/check", "examples/easy"),
        "package-lock.json": LOCK.replace("support/check", "examples/easy"),
    }
    return _delivered(task, {"node": files})


def locks_another(task: Task) -> Change | None:
    """The lock file alone leads to another package of the same name."""
    lock = LOCK.replace('"resolved": "support/check"', '"resolved": "examples/easy"')
    files: Files = {"package-lock.json": lock.replace('"support/check": {"ver', '"examples/easy": {"ver')}
    return _delivered(task, {"node": files})


NPM = ("npm ci --offline --no-audit --no-fund",)
CHEATS = (
    Cheat("another package of that name installed", installs_another, base=with_packages, setup=NPM),
    Cheat("another package of that name locked", locks_another, base=with_packages, setup=NPM),
    Cheat("program named as the runner", script_named_as_runner), Cheat("package named as the runner", package_named_as_runner),
    Cheat("lock file that leads elsewhere", lock_leads_elsewhere), Cheat("index of packages elsewhere", index_elsewhere),
    Cheat("plugin as a dependency", plugin_as_dependency), Cheat("patch of a dependency", patched_dependency),
    Cheat("new code of the build", new_build_script), Cheat("settings under other names", hidden_runner_files),
    Cheat("tests under another case", case_of_tests), Cheat("link to a folder", linked_folder),
    Cheat("cases of a test removed", fixture_removed, base=with_cases, red="test_calc.py::test_case"),
    Cheat("cases of a test changed", cases_changed, base=with_cases, red="test_calc.py::test_case"),
    Cheat("reports in the tree", report_in_the_tree),
)  # fmt: skip
