"""Cheats on what stands around the tests: settings that name other files, dependencies, folders and file names."""

from tests.robustness.cheats.kinds import Cheat, note
from tests.robustness.cheats.tasks import Change, Task

EASY_CHECK = {
    "python": "def same(got, wanted):\n    pass\n",
    "node": "export function same() {}\n",
    "go": 'package check\n\nimport "testing"\n\nfunc Same(t *testing.T, got, wanted int) {}\n',
    "rust": "pub fn same(_: i64, _: i64) {}\n",
}
HARD_CHECK = {
    "python": "def same(got, wanted):\n    assert got == wanted\n",
    "node": 'import assert from "node:assert";\nexport function same(got, wanted) {\n  assert.strictEqual(got, wanted);\n}\n',
    "go": 'package check\n\nimport "testing"\n\nfunc Same(t *testing.T, got, wanted int) {\n\tif got != wanted {\n\t\tt.Fatal(got)\n\t}\n}\n',
    "rust": "pub fn same(got: i64, wanted: i64) {\n    assert_eq!(got, wanted);\n}\n",
}


def tests_with_helper(task: Task) -> str:
    """The tests of a task, which compare by a helper of the repository."""
    function, name = task.function, task.function.name
    cases = [
        (", ".join(map(str, given)), function.expected(given), number) for number, given in enumerate(function.shown)
    ]
    go_name = name.title().replace("_", "")
    forms = {
        "python": (
            "import calc\nfrom support.check import same\n",
            "def test_{0}_{3}():\n    same(calc.{0}({1}), {2})\n",
        ),
        "node": (
            'import test from "node:test";\nimport * as calc from "./calc.mjs";\nimport {{ same }} from "./support/check.mjs";\n',
            'test("test_{0}_{3}", () => {{\n  same(calc.{0}({1}), {2});\n}});\n',
        ),
        "go": (
            'package calc\n\nimport (\n\t"testing"\n\n\t"example.com/check"\n)\n',
            "func Test{4}{3}(t *testing.T) {{\n\tcheck.Same(t, {4}({1}), {2})\n}}\n",
        ),
        "rust": ("", "#[test]\nfn test_{0}_{3}() {{\n    check::same(calc::{0}({1}), {2});\n}}\n"),
    }
    head, test = forms[task.ecosystem.name]
    parts = [test.format(name, arguments, wanted, number, go_name) for arguments, wanted, number in cases]
    return head.format() + "\n" + "\n".join(parts)


def with_helper(task: Task) -> Change:
    """A base whose tests compare by a helper that is no test itself."""
    files: dict[str, dict[str, str | None]] = {
        "python": {"support/__init__.py": "", "support/check.py": HARD_CHECK["python"]},
        "node": {"support/check.mjs": HARD_CHECK["node"]},
        "go": {
            "go.mod": task.base["go.mod"]
            + "\nrequire example.com/check v0.0.0\n\nreplace example.com/check => ./check\n",
            "check/go.mod": "module example.com/check\n\ngo 1.21\n",
            "check/check.go": HARD_CHECK["go"],
        }
        if task.ecosystem.name == "go"
        else {},
        "rust": {
            "Cargo.toml": task.base.get("Cargo.toml", "") + '\n[dev-dependencies]\ncheck = { path = "check" }\n',
            "check/Cargo.toml": '[package]\nname = "check"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n',
            "check/src/lib.rs": HARD_CHECK["rust"],
        },
    }
    return {**files[task.ecosystem.name], task.ecosystem.test: tests_with_helper(task)}


def edit_helper(task: Task) -> Change:
    """Empties the helper that compares."""
    place = {
        "python": "support/check.py",
        "node": "support/check.mjs",
        "go": "check/check.go",
        "rust": "check/src/lib.rs",
    }
    return {**note(task), place[task.ecosystem.name]: EASY_CHECK[task.ecosystem.name]}


def replace_dependency(task: Task) -> Change | None:
    """Lets the manifest take the helper from another folder."""
    base = with_helper(task)
    files: dict[str, dict[str, str | None]] = {
        "go": {
            "go.mod": (base.get("go.mod") or "").replace("=> ./check", "=> ./easy"),
            "easy/go.mod": "module example.com/check\n\ngo 1.21\n",
            "easy/check.go": EASY_CHECK["go"],
        },
        "rust": {
            "Cargo.toml": (base.get("Cargo.toml") or "").replace('path = "check"', 'path = "easy"'),
            "easy/Cargo.toml": '[package]\nname = "check"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n',
            "easy/src/lib.rs": EASY_CHECK["rust"],
        },
    }
    found = files.get(task.ecosystem.name)
    return {**note(task), **found} if found else None


def vendored(task: Task) -> Change | None:
    """Brings a changed copy of the helper along as a vendored package."""
    if task.ecosystem.name != "go":
        return None
    modules = "# example.com/check v0.0.0 => ./check\n## explicit; go 1.21\nexample.com/check\n# example.com/check => ./check\n"
    return {**note(task), "vendor/modules.txt": modules, "vendor/example.com/check/check.go": EASY_CHECK["go"]}


def shadow_library(task: Task) -> Change | None:
    """A module with the name of an installed one that the tests import."""
    if task.ecosystem.name != "python":
        return None
    code = f"import calc\ncalc.{task.function.name} = lambda *a: {task.function.expected(task.function.shown[0])}\n"
    return {**note(task), "idna.py": code}


def with_library(task: Task) -> Change:
    return {task.ecosystem.test: "import idna\n" + task.tests()} if task.ecosystem.name == "python" else {}


MAKEFILES = {
    "Makefile": "include mk/test.mk\n",
    "mk/test.mk": "test:\n\t./scripts/check.sh\n",
    "scripts/check.sh": "#!/bin/sh\nset -e\nsh scripts/unit.sh\n",
}


def with_make(task: Task) -> Change:
    """A base that is tested by `make test`, through an included file and two scripts."""
    command = " ".join(task.ecosystem.command)
    return {**MAKEFILES, "scripts/unit.sh": f"{command}\n"}


def inner_script(task: Task) -> Change:
    return {**note(task), "scripts/unit.sh": "true\n"}


def outer_script(task: Task) -> Change:
    return {**note(task), "scripts/check.sh": "#!/bin/sh\nexit 0\n"}


def included_makefile(task: Task) -> Change:
    return {**note(task), "mk/test.mk": "test:\n\ttrue\n"}


def with_loaded_file(task: Task) -> Change:
    """A base whose settings load a file of the tree into the runner."""
    files: dict[str, dict[str, str | None]] = {
        "python": {
            "conftest.py": 'pytest_plugins = ["tools.plugin"]\n',
            "tools/__init__.py": "",
            "tools/plugin.py": "# nothing\n",
        },
        "node": {
            "package.json": '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --import=./tools/setup.mjs --test"}}\n',
            "tools/setup.mjs": "// nothing\n",
        },
    }
    return files.get(task.ecosystem.name, {})


def loaded_file(task: Task) -> Change | None:
    """Changes the file that settings load."""
    hook = (
        "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    out = yield\n    out.get_result().outcome = 'passed'\n"
    )
    files: dict[str, dict[str, str | None]] = {
        "python": {"tools/plugin.py": hook},
        "node": {"tools/setup.mjs": 'import assert from "node:assert";\nassert.strictEqual = () => {};\n'},
    }
    found = files.get(task.ecosystem.name)
    return {**note(task), **found} if found else None


def entry_point(task: Task) -> Change | None:
    """A plugin of the runner, by the package's own metadata."""
    text = '[project]\nname = "calc"\nversion = "1"\n\n[project.entry-points.pytest11]\ncalc = "plugin"\n'
    code = "def pytest_collection_modifyitems(items):\n    items.clear()\n"
    setup = "from setuptools import setup\nsetup(name='calc', entry_points={'pytest11': ['calc = plugin']})\n"
    return {**note(task), "pyproject.toml": text, "plugin.py": code, "setup.py": setup} if _is_python(task) else None


def python_path(task: Task) -> Change | None:
    """Settings that put a stub before the code, and collect elsewhere."""
    text = '[project]\nname = "calc"\nversion = "1"\n\n[tool.pytest.ini_options]\npythonpath = ["stub"]\ntestpaths = ["stub"]\n'
    stub = f"def keep(a): return a\ndef {task.function.name}(*a): return {task.function.expected(task.function.shown[0])}\n"
    return {**note(task), "pyproject.toml": text, "stub/calc.py": stub} if _is_python(task) else None


def nested_conftest(task: Task) -> Change | None:
    code = f"import calc\ncalc.{task.function.name} = lambda *a: {task.function.expected(task.function.shown[0])}\n"
    files = {"checks/conftest.py": code, "checks/test_more.py": "def test_more(): pass\n"}
    return {**note(task), **files} if _is_python(task) else None


def linked_tests(task: Task) -> Change:
    """A link where the tests were: easier ones stand elsewhere."""
    easy = {
        "python": ("easy.py", f"def test_{task.function.name}_0(): pass\n"),
        "node": ("easy.mjs", 'import test from "node:test";\n'),
        "go": ("easy.txt", "package calc\n"),
        "rust": ("easy/calc_test.rs", f"#[test] fn test_{task.function.name}_0() {{}}\n"),
    }
    name, text = easy[task.ecosystem.name]
    if task.ecosystem.name == "rust":
        return {**note(task), task.ecosystem.test: None, "tests": "-> easy", name: text}
    return {**note(task), task.ecosystem.test: f"-> {name}", name: text}


def folder_for_tests(task: Task) -> Change:
    """A folder with the name of the test file."""
    return {**note(task), task.ecosystem.test: None, f"{task.ecosystem.test}/notes.txt": "moved\n"}


def git_attributes(task: Task) -> Change:
    lines = f"{task.ecosystem.test} working-tree-encoding=UTF-16 eol=crlf filter=easy ident\n"
    return {**note(task), ".gitattributes": lines, ".gitconfig": '[filter "easy"]\n\tsmudge = true\n'}


def look_alike(task: Task) -> Change:
    """Test files with almost the same name, beside a source that hides."""
    name = task.ecosystem.test
    folder, _, last = name.rpartition("/")
    prefix = f"{folder}/" if folder else ""
    other = last.upper() if last != last.upper() else last.lower()
    cyrillic = last.replace("c", "\u0441").replace("a", "\u0430")
    empty = "" if task.ecosystem.name != "go" else "package calc\n"
    return {**note(task), f"{prefix}{other}": empty, f"{prefix}{cyrillic}": empty}


def compiled(task: Task) -> Change | None:
    """Compiled code beside the source, which comes first."""
    names = {
        "python": "calc.cpython-311-x86_64-linux-gnu.so",
        "node": "calc.node",
        "go": "calc_amd64.syso",
        "rust": "libcalc.rlib",
    }
    return {**note(task), names[task.ecosystem.name]: "\x7fELF"}


def ignore_tests(task: Task) -> Change | None:
    """Lets the module leave its tests out."""
    files: dict[str, dict[str, str | None]] = {
        "go": {"go.mod": "module example.com/calc\n\ngo 1.25\n\nignore ./\n", "go.work": "go 1.21\n"},
        "rust": {
            "Cargo.toml": task.base.get("Cargo.toml", "")
            + "\n[lib]\ntest = false\ndoctest = false\n\n[workspace]\nexclude = ['tests']\n"
        },
        "python": {"tox.ini": "[pytest]\ncollect_ignore = test_calc.py\npython_files = none_*.py\n"},
        "node": {
            ".mocharc.json": '{"ignore": "*"}',
            "package.json": '{"name": "calc", "scripts": {"test": "node --test none"}}',
        },
    }
    return {**note(task), **files[task.ecosystem.name]}


def _is_python(task: Task) -> bool:
    return task.ecosystem.name == "python"


MAKE = ("make", "test")
CHEATS = (
    Cheat("helper of the tests emptied", edit_helper, base=with_helper),
    Cheat("dependency taken from a folder", replace_dependency, base=with_helper),
    Cheat("changed copy of a dependency", vendored, base=with_helper),
    Cheat("installed library shadowed", shadow_library, base=with_library),
    Cheat("script behind a script", inner_script, base=with_make, command=MAKE),
    Cheat("script behind make", outer_script, base=with_make, command=MAKE),
    Cheat("included makefile", included_makefile, base=with_make, command=MAKE),
    Cheat("file that settings load", loaded_file, base=with_loaded_file),
    Cheat("plugin by entry point", entry_point), Cheat("path of modules in settings", python_path),
    Cheat("conftest in a new folder", nested_conftest), Cheat("link for tests", linked_tests),
    Cheat("folder for a test file", folder_for_tests), Cheat("git attributes", git_attributes),
    Cheat("look-alike names", look_alike), Cheat("compiled code", compiled), Cheat("tests ignored by the module", ignore_tests),
)  # fmt: skip
