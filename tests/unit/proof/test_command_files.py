"""Which files of the base a proof command names or starts: those judge, and come from the base."""

import pytest

from pointsman.proof.command_files import named_files

FILES = ("check.sh", "check.py", "expected.txt", "log", "patterns.txt", "scripts/verify.js", "tests/test_a.py")
SCRIPTS = {"test": "node scripts/verify.js"}
MAKEFILE = "test:\n\t@./check.sh\n"


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
    assert named_files(command, FILES, SCRIPTS, MAKEFILE) == files
