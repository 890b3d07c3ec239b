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
            ["python3 -m unittest discover -q -s tests"],
        ),
        ({"a.py": "", "tests/test_a.py": "import a"}, [VENV, f"{INSTALL} pytest"], ["python -m pytest -q"]),
        ({"a.py": "", "test_a.py": "import unittest"}, [], ["python3 -m unittest discover -q"]),
        (
            {"tests/__init__.py": "", "tests/a_test.py": "import unittest"},
            [],
            ["python3 -m unittest discover -q -p '*_test*.py'"],
        ),
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
            {"pom.xml": "<parent>\n  <groupId>org.apache.commons</groupId>", "src/test/java/ATest.java": ""},
            ["mvn -q -B -Dmaven.test.failure.ignore=true -Drat.skip=true test"],
            ["mvn -q -B -Drat.skip=true test"],
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


@pytest.mark.parametrize(
    ("scripts", "verify", "left_out"),
    [
        (
            {"test": "c8 --100 npm run test:unit && npm run types", "test:unit": 'tape "test/*.js"', "types": "tsd"},
            ["npm run test:unit"],
            ["tsd"],
        ),
        ({"test": "npm run lint && borp && tsd", "lint": "eslint ."}, ["npx borp"], ["eslint .", "tsd"]),
        ({"test": "npm run unit && jest e2e", "unit": "c8 node --test"}, ["npm run unit", "npx jest e2e"], []),
        (
            {
                "pretest": "npm run lint",
                "lint": "eslint .",
                "test": "nyc tape 'test/*.js'",
                "posttest": "aud --production",
            },
            ["npx nyc tape 'test/*.js'"],
            [],
        ),
        ({"pretest": "tsc -p .", "test": "mocha"}, ["npm test"], []),
        ({"test": "npm test"}, ["npm test"], []),
        ({"test": "npm run a", "a": "npm run test"}, ["npm test"], []),
        ({"test": "make check | tee log"}, ["npm test"], []),
        ({"test": "node test.js"}, ["npm test"], []),
        ({"test": "NODE_ENV=test vitest run"}, ["npm test"], []),
    ],
)
async def test_of_a_test_script_what_runs_tests_is_the_proof(
    scripts: dict[str, str], verify: list[str], left_out: list[str]
) -> None:
    found = await proposed({"package.json": json.dumps({"scripts": scripts})})
    assert [one.command for one in found.verify] == verify
    assert [note.rpartition(": ")[2] for note in found.notes] == left_out


@pytest.mark.parametrize(
    ("tag", "version"), [("v1.2.3", "1.2.3"), ("pkg-4.0", "4.0"), ("latest", "0.0.0"), ("", "0.0.0")]
)
async def test_a_version_from_git_is_named_where_a_fresh_tree_has_no_git(tag: str, version: str) -> None:
    files = {"pyproject.toml": PYPROJECT.replace("hatchling", "hatch-vcs"), "tests/test_a.py": ""}
    found = await propose(source(files), lambda _: True, tag)
    workspace = read_project_file(render(found).encode()).workspace
    assert dict(workspace.env) == {"SETUPTOOLS_SCM_PRETEND_VERSION": version}
    assert not (await propose(source({**files, "PKG-INFO": ""}), lambda _: True, tag)).env
