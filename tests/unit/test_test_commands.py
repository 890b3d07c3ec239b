"""Which command lines run tests, and which of them are no proof."""

import pytest

from pointsman._shared.test_commands import is_bare_test_run, runs_tests


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q", "python3 -m pytest", "uv run pytest", ".venv/bin/pytest", "python -m unittest", "npm test", "npm run test:unit",
        "go test ./...", "cargo test", "cargo nextest run", "make check", "node --test", "./gradlew test", "mvn -q verify", "npx jest",
    ],
)  # fmt: skip
def test_runners_are_known_by_their_names_and_tasks(command: str) -> None:
    assert runs_tests(command.split())
    assert is_bare_test_run(command.split())
    assert is_bare_test_run(["sh", "-c", f"pointsman proof run; {command}"])


@pytest.mark.parametrize("command", ["git diff", "cat test.py", "ruff check .", "mypy .", "make docs", "ls tests"])
def test_other_commands_run_no_tests(command: str) -> None:
    assert not runs_tests(command.split())


def test_a_proof_of_ours_is_no_bare_run() -> None:
    assert not is_bare_test_run(["pointsman", "proof", "run", "--base", "main", "--verify", "pytest -q"])
    assert not is_bare_test_run(["/tmp/bin/pointsman", "proof", "run"])
