"""A browser is installed where that is possible; what is left out is said in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNREACHABLE = "http://127.0.0.1:9"


class Machine:
    """A machine with just the commands that a test gives it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        self.give("true", "exit 0")
        self.give("sudo", '[ "$1" = -n ] && shift; exec "$@"')

    def give(self, name: str, script: str) -> None:
        """Put a command on the path; it notes how it was called."""
        command = self._folder / name
        command.write_text(f'#!/bin/sh\necho "{name} $*" >> {self._calls}\n{script}\n')
        command.chmod(0o755)

    def install(self, *options: str) -> str:
        """Look for a browser; what was said."""
        browsers = {"PLAYWRIGHT_DOWNLOAD_HOST": UNREACHABLE, "PLAYWRIGHT_BROWSERS_PATH": str(self._folder / "none")}
        environment = {**os.environ, "PATH": str(self._folder), **browsers}
        command = [sys.executable, "-m", "tests.e2e.install", *options]
        return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    @property
    def packages(self) -> list[str]:
        """The package that each call of apt-get was for."""
        calls = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [call.rpartition(" ")[2] for call in calls if call.startswith("apt-get")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_browser_that_is_there_is_used(machine: Machine) -> None:
    machine.give("chromium", "exit 0")
    machine.give("apt-get", "exit 1")
    assert machine.install("--package") == ""
    assert machine.packages == []


def test_the_distributions_package_is_installed_where_that_is_allowed(machine: Machine, tmp_path: Path) -> None:
    machine.give("apt-get", f"echo '#!/bin/sh' > {tmp_path}/chromium; /bin/chmod +x {tmp_path}/chromium")
    assert machine.install("--package") == "no Chromium here: installing one for the tests of the console\n"
    assert machine.packages == ["chromium"]


def test_a_browser_that_cannot_be_installed_fails_nothing(machine: Machine) -> None:
    machine.give("apt-get", "exit 100")
    said = machine.install("--package")
    assert said.splitlines()[-1] == "it could not be installed: the tests of the console will be skipped"
    assert machine.packages == ["chromium", "update"]


def test_the_distributions_packages_are_left_alone_unless_asked_for(machine: Machine) -> None:
    machine.give("apt-get", "exit 0")
    machine.install()
    assert machine.packages == []


def test_a_run_of_the_tests_says_in_one_line_how_many_were_skipped_and_why(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest("from tests.conftest import pytest_terminal_summary")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(3))
        def test_needs_a_browser(number):
            pytest.skip("NO CHROMIUM")

        @pytest.mark.skip(reason="no go")
        def test_needs_go():
            pass
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-n", "1")
    result.stdout.fnmatch_lines(["4 SKIPPED: 3 × NO CHROMIUM; 1 × no go"])
