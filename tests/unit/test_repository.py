"""The habits of CONTRIBUTING.md that a machine can check."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from pointsman.api.common.v1 import common_pb2
from pointsman.services.chassis.core.errors import CODE_OF, Reason

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("pointsman/api/", "buf/")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def tracked(pattern: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = [name for name in listing.stdout.splitlines() if not name.startswith(GENERATED)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


LOCKS = {
    "requirements.lock": 30,
    "requirements-build.lock": 5,
    "requirements-dev.lock": 60,
    "requirements-docs.lock": 20,
}


@pytest.mark.parametrize(("lock", "least"), LOCKS.items())
def test_a_lock_file_names_no_host_and_hashes_every_package(lock: str, least: int) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    pinned = re.findall(r"^[a-z0-9._-]+(?:\[[a-z,]+\])?==", text, re.MULTILINE)
    assert len(pinned) >= least
    assert text.count("--hash=sha256:") >= len(pinned)


def test_no_python_file_is_longer_than_four_hundred_lines() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in tracked("*.py")}
    assert {name: length for name, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_sixty_lines() -> None:
    long = []
    for path in tracked("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                length = node.end_lineno - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    long.append((str(path.relative_to(ROOT)), node.name, length))
    assert long == []


def test_the_migrations_of_a_service_are_one_line() -> None:
    numbers: dict[Path, list[str]] = {}
    for path in tracked("services/*/migrations/versions/*.py"):
        numbers.setdefault(path.parent, []).append(path.name[:4])
    assert {str(folder): sorted(found) for folder, found in numbers.items() if len(set(found)) < len(found)} == {}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_nothing_is_left_for_later_in_the_code() -> None:
    marks = re.compile(r"#\s*(TODO|FIXME|XXX|HACK)\b")
    assert [str(path) for path in tracked("*.py") if marks.search(path.read_text())] == []


def test_every_error_reason_of_the_contract_is_known_with_the_code_that_its_comment_names() -> None:
    proto = (ROOT / "protos/pointsman/api/common/v1/common.proto").read_text()
    commented = {
        name: code
        for code, name in re.findall(r"// ([A-Z_]+)(?: with RetryInfo)?\. [^\n]*\n  ERROR_REASON_(\w+) =", proto)
    }
    declared = {name.removeprefix("ERROR_REASON_") for name, _ in common_pb2.ErrorReason.items()} - {"UNSPECIFIED"}
    assert declared == set(Reason.__members__)
    assert commented == {reason.name: CODE_OF[reason].value for reason in Reason}


def test_names_and_docstrings_use_the_words_of_the_field() -> None:
    """Words that hide their subject or object; names of stored data, in quotation marks or as a key, stay."""
    keys_of_the_rule_file = ROOT / "services/router/domain/rule_document.py"
    riddles = re.compile(r"(?<![\"'\w])_?(told|whoever|kept)(?![\"'\w])", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*tracked("services/*.py"), *tracked("pointsman/*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if path != keys_of_the_rule_file and riddles.search(line)
    ]
    assert found == []
