"""Which files judge the work, and how manifests and Rust sources are split."""

import json
import tomllib
from datetime import date

import pytest

from pointsman.proof.protection.globs import matches
from pointsman.proof.protection.manifests import SplitManifest, split_manifest
from pointsman.proof.protection.rules import Kind, default_table
from pointsman.proof.protection.rust_tests import split_source, with_base_tests
from pointsman.proof.protection.toml_writer import write_toml

TABLE = default_table()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tests/unit/data.json", Kind.TEST),
        ("pkg/tests/x.py", Kind.TEST),
        ("test_x.py", Kind.TEST),
        ("src/calc_test.go", Kind.TEST),
        ("src/test/java/A.java", Kind.TEST),
        ("web/src/App.spec.tsx", Kind.TEST),
        ("conftest.py", Kind.CONFIG),
        ("a/b/conftest.py", Kind.CONFIG),
        ("jest.config.cjs", Kind.CONFIG),
        ("Makefile", Kind.CONFIG),
        (".cargo/config.toml", Kind.CONFIG),
        (".github/workflows/ci.yml", Kind.CI),
        ("ui/__snapshots__/a.snap", Kind.SNAPSHOT),
        ("pyproject.toml", Kind.MANIFEST),
        ("web/package.json", Kind.MANIFEST),
        ("pointsman.toml", Kind.CONFIG),
        ("internal/testutil/check.go", Kind.TEST),
        ("src/test_helpers.rs", Kind.TEST),
    ],
)
def test_files_that_judge_are_protected_with_a_reason(path: str, kind: Kind) -> None:
    found = TABLE.protection(path)
    assert found is not None
    assert found.kind is kind
    assert found.why


@pytest.mark.parametrize(
    "path", ["src/calc.py", "README.md", "contest.py", "src/latest.py", "src/testing.py", "lib/attest.go", "go.mod"]
)
def test_sources_are_not_protected(path: str) -> None:
    assert TABLE.protection(path) is None


def test_a_project_its_command_and_its_tests_add_files() -> None:
    table = TABLE.extended(["checks/"], ["bin/prove.sh"], ["spec_of_math.py"])
    found = [table.protection(path) for path in ("checks/a/b.py", "bin/prove.sh", "spec_of_math.py", "bin/other.sh")]
    assert [one.kind if one else None for one in found] == [Kind.PROJECT, Kind.COMMAND, Kind.TEST, None]


def test_globs_stay_in_their_folder_unless_they_say_otherwise() -> None:
    assert matches("a/b.py", "a/*.py")
    assert not matches("a/b/c.py", "a/*.py")
    assert matches("b.py", "**/b.py")
    assert matches("a/x/b.py", "**/b.py")
    assert not matches("ab.py", "**/b.py")


def split(name: str, base: str | None, delivered: str | None) -> SplitManifest:
    found = TABLE.protection(name)
    assert found is not None
    assert found.manifest is not None
    return split_manifest(
        base.encode() if base is not None else None,
        delivered.encode() if delivered is not None else None,
        found.manifest,
    )


def test_pyproject_takes_settings_from_the_base_and_dependencies_from_the_delivery() -> None:
    base = '[project]\nname = "x"\ndependencies = ["a"]\n[tool.pytest.ini_options]\naddopts = "-q"\n'
    delivered = '[project]\nname = "x"\ndependencies = ["a", "b"]\n[tool.pytest.ini_options]\naddopts = "-k nothing"\n[tool.ruff]\nline-length = 3\n'
    found = split("pyproject.toml", base, delivered)
    document = tomllib.loads(found.content.decode())
    assert document["tool"]["pytest"] == {"ini_options": {"addopts": "-q"}}
    assert document["project"]["dependencies"] == ["a", "b"]
    assert document["tool"]["ruff"] == {"line-length": 3}
    assert (found.protected_keys, found.dependency_keys) == (("tool.pytest",), ("project.dependencies",))


def test_settings_that_the_author_adds_or_removes_are_undone() -> None:
    added = split(
        "pyproject.toml",
        '[project]\nname = "x"\n',
        '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-k no"\n',
    )
    assert "pytest" not in tomllib.loads(added.content.decode())["tool"]
    removed = split("pyproject.toml", "[tool.pytest.ini_options]\nstrict = true\n", '[project]\nname = "x"\n')
    assert tomllib.loads(removed.content.decode())["tool"]["pytest"]["ini_options"] == {"strict": True}
    inline = split("pyproject.toml", "", 'tool = {pytest = {ini_options = {addopts = "-k no"}}}\n')
    assert tomllib.loads(inline.content.decode()) == {"tool": {}}


def test_package_json_keeps_the_scripts_of_the_base() -> None:
    base = {"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}
    found = split(
        "package.json",
        json.dumps(base),
        json.dumps({"scripts": {"test": "true"}, "jest": {}, "dependencies": {"a": "2"}}),
    )
    assert json.loads(found.content) == {"scripts": {"test": "jest"}, "dependencies": {"a": "2"}}
    assert found.protected_keys == ("scripts", "jest")


def test_ini_files_are_split_by_section() -> None:
    found = split(
        "setup.cfg",
        "[tool:pytest]\naddopts = -q\n",
        "[metadata]\nname = x\n[tool:pytest]\naddopts = -k no\n[testenv:py]\ncommands = true\n",
    )
    text = found.content.decode()
    assert "addopts = -q" in text
    assert "name = x" in text
    assert "testenv" not in text


def test_cargo_and_maven_are_split() -> None:
    cargo = split(
        "Cargo.toml",
        '[package]\nname = "x"\n',
        '[package]\nname = "x"\nautotests = false\n[lib]\ntest = false\npath = "src/l.rs"\n',
    )
    assert tomllib.loads(cargo.content.decode()) == {"package": {"name": "x"}, "lib": {"path": "src/l.rs"}}
    pom = "<project><properties><java>17</java>{}</properties><dependencies>{}</dependencies></project>"
    found = split("pom.xml", pom.format("", ""), pom.format("<skipTests>true</skipTests>", "<dependency/>"))
    assert b"skipTests" not in found.content
    assert b"<java>17</java>" in found.content
    assert found.dependency_keys == ("dependencies",)


def test_a_manifest_that_cannot_be_read_or_is_gone_is_the_bases() -> None:
    for delivered in ("[broken", None):
        found = split("pyproject.toml", '[project]\nname = "x"\n', delivered)
        assert found.content == b'[project]\nname = "x"\n'
        assert found.protected_keys


def test_a_manifest_without_protected_changes_stays_byte_for_byte() -> None:
    text = '# a comment\n[project]\nname = "x"\ndependencies = ["b"]\n'
    assert split("pyproject.toml", '[project]\nname = "x"\n', text).content == text.encode()


def test_toml_is_written_as_it_was_read() -> None:
    document = {
        "a.b": 'quote " and \\ and \u007f\n', "n": [1, -2.5, True, date(2026, 1, 2)], "empty": {},
        "deep": {"er": {"list": [{"x": 1}, {"y": {"z": "ü"}}]}},
    }  # fmt: skip
    assert tomllib.loads(write_toml(document)) == document


RUST = """pub fn f() -> char { '{' } // #[cfg(test)] mod no {
const TEXT: &str = r#"#[cfg(test)] mod never { "#;
fn life<'a>(x: &'a str) -> &'a str { x }
#[cfg(test)]
mod tests {
    #[test]
    fn one() { assert_eq!("}", "}"); /* } */ }
}
pub fn g() {}
"""


def test_rust_test_modules_are_found_by_their_braces() -> None:
    found = split_source(RUST)
    assert len(found.tests) == 1
    assert found.tests[0].startswith("#[cfg(test)]\nmod tests")
    assert "pub fn g()" in found.code
    assert "one()" not in found.code


def test_the_bases_test_modules_judge_the_delivered_code() -> None:
    cheat = RUST.replace('assert_eq!("}", "}");', "").replace("pub fn g() {}", "pub fn g() -> i32 { 1 }")
    merged = with_base_tests(RUST, cheat)
    assert 'assert_eq!("}", "}");' in merged
    assert "pub fn g() -> i32" in merged
    assert with_base_tests(RUST, RUST) == RUST
    assert "mod tests" not in with_base_tests(None, RUST)
