"""What is seen in a repository: one proposal per ecosystem, each line with its reason, and a file that can be read."""

import json

import pytest

from pointsman.project import read_project_file
from pointsman.project.detection import Proposal, propose, render
from pointsman.project.ecosystems import ecosystems, ecosystems_of, manifest_names
from pointsman.project.setup_plan import SourceFiles

PYPROJECT = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "x"\n'
PACKAGE = {"dependencies": {"left": "1"}, "scripts": {"test": "jest"}}
INSTALL = ".venv/bin/python -m pip install -q"
VENV = "python3 -m venv .venv"


def source(content: dict[str, str]) -> SourceFiles:
    async def read(name: str) -> bytes:
        return content[name].encode()

    return SourceFiles(tuple(content), read, "tree")


async def proposed(content: dict[str, str], missing: str = "") -> Proposal:
    return await propose(source(content), lambda program: program != missing)


@pytest.mark.parametrize(
    ("files", "setup", "verify"),
    [
        (
            {"uv.lock": "", "pyproject.toml": PYPROJECT, "tests/test_a.py": "import pytest"},
            ["uv sync --frozen --all-extras"],
            ["uv run --no-sync pytest -q"],
        ),
        (
            {"pyproject.toml": PYPROJECT, "src/x/__init__.py": "", "tests/test_a.py": "def test(): ..."},
            [VENV, f"{INSTALL} -e . pytest"],
            ["python -m pytest -q"],
        ),
        (
            {
                "pyproject.toml": PYPROJECT + '[project.optional-dependencies]\ntest = ["pytest", "x"]\ndocs = ["y"]\n',
                "tests/test_a.py": "",
            },
            [VENV, f"{INSTALL} -e '.[test]'"],
            ["python -m pytest -q"],
        ),
        (
            {
                "pyproject.toml": PYPROJECT
                + '[dependency-groups]\ntest = ["pytest>=8", {include-group = "more"}]\nmore = ["attrs"]\n',
                "tests/test_a.py": "",
            },
            [VENV, f"{INSTALL} -e . 'pytest>=8' attrs"],
            ["python -m pytest -q"],
        ),
        (
            {"requirements.txt": "attrs", "requirements-dev.txt": "pytest", "test_a.py": "import pytest"},
            [VENV, f"{INSTALL} -r requirements.txt -r requirements-dev.txt pytest"],
            ["python -m pytest -q"],
        ),
        (
            {"setup.py": "", "setup.cfg": "[options.extras_require]\ntests = pytest\n", "x/tests/test_a.py": "pytest"},
            [VENV, f"{INSTALL} -e '.[tests]'"],
            ["python -m pytest -q"],
        ),
        (
            {"setup.cfg": "", "tests/test_a.py": "import unittest"},
            [],
            ["python3 -m unittest discover -q"],
        ),
        ({"a.py": "", "tests/test_a.py": "import a"}, [VENV, f"{INSTALL} pytest"], ["python -m pytest -q"]),
        ({"a.py": "", "test_a.py": "import unittest"}, [], ["python3 -m unittest discover -q"]),
        ({"package-lock.json": "{}", "package.json": json.dumps(PACKAGE)}, ["npm ci"], ["npm test"]),
        ({"package.json": json.dumps(PACKAGE)}, ["npm install --no-package-lock"], ["npm test"]),
        ({"package.json": "{}", "a.test.js": ""}, [], ["node --test"]),
        ({"package.json": "not json", "a.test.js": ""}, [], ["node --test"]),
        (
            {"pnpm-lock.yaml": "", "package-lock.json": "", "package.json": json.dumps(PACKAGE)},
            ["pnpm install --frozen-lockfile"],
            ["pnpm test"],
        ),
        (
            {"yarn.lock": "", "package.json": json.dumps(PACKAGE)},
            ["yarn install --frozen-lockfile"],
            ["yarn test"],
        ),
        ({"go.mod": "module x", "go.sum": "", "a_test.go": ""}, ["go mod download"], ["go test ./..."]),
        ({"go.mod": "module x", "a_test.go": ""}, [], ["go test ./..."]),
        ({"Cargo.toml": "", "Cargo.lock": ""}, ["cargo fetch --locked"], ["cargo test"]),
        ({"Cargo.toml": ""}, ["cargo fetch"], ["cargo test"]),
        (
            {"pom.xml": "", "mvnw": "", "src/test/java/ATest.java": ""},
            ["./mvnw -q -B -Dmaven.test.failure.ignore=true test"],
            ["./mvnw -q -B test"],
        ),
        (
            {"build.gradle.kts": "", "src/test/java/ATest.java": ""},
            ["gradle --no-daemon -q testClasses"],
            ["gradle --no-daemon --offline test"],
        ),
        ({"Makefile": "all:\n\ttrue\ncheck: all\n\ttrue\n"}, [], ["make check"]),
        ({"README": ""}, [], []),
    ],
)
async def test_each_ecosystem_is_seen_by_its_files(files: dict[str, str], setup: list[str], verify: list[str]) -> None:
    found = await proposed(files)
    assert [one.command for one in found.setup] == setup
    assert [one.command for one in found.verify] == verify
    assert all(one.reason for one in (*found.setup, *found.verify))
    project = read_project_file(render(found).encode())
    assert [command.text for command in project.workspace.setup] == setup
    assert [command.text for command in project.proof.verify] == verify


async def test_two_languages_in_one_repository_are_both_set_up() -> None:
    found = await proposed({"go.mod": "", "go.sum": "", "a_test.go": "", "package.json": json.dumps(PACKAGE)})
    assert [one.command for one in found.verify] == ["npm test", "go test ./..."]


async def test_what_stands_in_the_way_is_noted() -> None:
    files = {
        "uv.lock": "", "pyproject.toml": PYPROJECT, "tests/test_a.py": "pytest", ".gitmodules": "",
        ".gitattributes": "*.bin filter=lfs",
    }  # fmt: skip
    found = await proposed(files, missing="uv")
    assert found.setup[1].command == f"{INSTALL} -e . pytest"
    assert ["uv is not installed" in found.notes[0], "submodules" in found.notes[1], "LFS" in found.notes[2]] == [
        True
    ] * 3
    assert (await proposed({"README": ""})).notes == (
        "no tests were found: name the command that proves work in [proof] verify",
    )
    assert "`cargo` is not installed" in (await proposed({"Cargo.toml": ""}, missing="cargo")).notes[0]


async def test_words_of_a_repository_cannot_leave_their_comment() -> None:
    script = 'x"\n[workspace]\nsetup = ["evil"] #\r\n"""'
    found = await proposed({"package.json": json.dumps({"scripts": {"test": script}})})
    assert read_project_file(render(found).encode()).workspace.setup == ()


def test_every_row_of_the_table_is_whole() -> None:
    for ecosystem in ecosystems():
        assert ecosystem.about
        assert ecosystem.setup
        assert ecosystem.tools


def test_one_ecosystem_counts_for_each_language() -> None:
    names = ("uv.lock", "requirements.txt", "package.json", "yarn.lock", "go.mod")
    assert [ecosystem.name for ecosystem in ecosystems_of(names)] == ["uv", "yarn", "go"]


def test_manifests_are_found_at_any_depth() -> None:
    names = ("package.json", "packages/a/package.json", "requirements/x.txt", "scripts/setup.sh", "src/a.js")
    assert manifest_names(names, ()) == ("package.json", "packages/a/package.json")
