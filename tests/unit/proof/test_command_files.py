"""Which files of the base a proof command names or starts: those judge, and come from the base."""

import pytest

from pointsman.proof.command_files import Settings, named_files

FILES = ("check.sh", "check.py", "expected.txt", "log", "patterns.txt", "scripts/verify.js", "tests/test_a.py")
SETTINGS = Settings(
    frozenset(FILES),
    {"package.json": '{"scripts": {"test": "node scripts/verify.js"}}', "Makefile": "test:\n\t@./check.sh\n"},
)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (("sh", "check.sh"), ("check.sh", "scripts/verify.js")),
        (("./check.sh",), ("check.sh", "scripts/verify.js")),
        (("pytest", "tests/test_a.py::test_b"), ("scripts/verify.js", "tests/test_a.py")),
        (("make", "test"), ("check.sh", "scripts/verify.js")),
        (("sh", "-c", "python check.py && true"), ("check.py", "scripts/verify.js")),
        (("diff", "expected.txt", "log"), ("expected.txt", "log", "scripts/verify.js")),
        (("grep", "-q", "T2", "log"), ("scripts/verify.js",)),
        (("grep", "-q", "-f", "patterns.txt", "log"), ("patterns.txt", "scripts/verify.js")),
        (("grep", "-q", "--file=patterns.txt", "log"), ("patterns.txt", "scripts/verify.js")),
        (("test", "-s", "log"), ("scripts/verify.js",)),
    ],
)
def test_a_command_protects_what_judges_and_not_what_it_only_looks_at(
    command: tuple[str, ...], files: tuple[str, ...]
) -> None:
    assert named_files(command, SETTINGS) == files


@pytest.mark.parametrize(
    ("path", "text", "loaded"),
    [
        (
            "jest.config.js",
            "module.exports = { setupFiles: ['<rootDir>/tools/setup'], preset: './easy' }",
            {"tools/setup.js"},
        ),
        ("package.json", '{"jest": {"globalSetup": "./tools/setup.js"}}', {"tools/setup.js"}),
        ("package.json", '{"exports": {"require": "./tools/setup.js"}}', set()),
        ("package.json", '{"scripts": {"test": "node --import=./tools/setup.js --test"}}', {"tools/setup.js"}),
        ("pytest.ini", "[pytest]\naddopts = -p tools.plugin -p no:randomly\n", {"tools/plugin.py"}),
        ("conftest.py", 'pytest_plugins = ["tools.plugin"]\n', {"tools/plugin.py"}),
        ("web/vitest.config.ts", 'test: { setupFiles: ["./setup.ts"] }', {"web/setup.ts"}),
    ],
)
def test_what_settings_load_into_the_runner_judges_too(path: str, text: str, loaded: set[str]) -> None:
    known = frozenset({"tools/setup.js", "tools/plugin.py", "web/setup.ts", "src/app.js"})
    assert set(named_files(("npm", "test"), Settings(known, {path: text}))) == loaded


def test_scripts_are_followed_from_a_makefile_that_includes_others() -> None:
    texts = {"Makefile": "include mk/test.mk\n", "mk/test.mk": "test:\n\tCI=1 scripts/all.sh --fast\n"}
    known = frozenset({"mk/test.mk", "scripts/all.sh", "scripts/unit.sh"})
    assert named_files(("make", "test"), Settings(known, texts)) == ("mk/test.mk", "scripts/all.sh")
    assert named_files(("pytest",), Settings(known, texts)) == ()
    outer = Settings(known, {"scripts/all.sh": "set -e\nbash scripts/unit.sh\n"})
    assert outer.started_by("scripts/all.sh") == {"scripts/unit.sh"}
