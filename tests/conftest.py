"""What every suite shares: limits that follow the load, one PostgreSQL per worker, a fresh database of each kind per test."""

import gc
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout

from pointsman.credentials.location import DEFAULT_DATA
from pointsman.sandbox import available_level
from tests.helpers import portable
from tests.helpers.engines import share_compiled_statements
from tests.helpers.external import SERVER_VARIABLE, external_database, found_of
from tests.helpers.limits import Limit
from tests.helpers.loopback import trust_loopback
from tests.helpers.migrated import migrated_postgres_database
from tests.helpers.migrations import remember_migrations
from tests.helpers.portable import as_configured, conflict_now_and_then
from tests.helpers.postgres import PostgresServer, postgres_server

pytest_plugins = ["pytester"]
trust_loopback()
gc.disable()  # until all tests are collected: nothing of what is imported is garbage
conflict_now_and_then()
remember_migrations()
share_compiled_statements()
USUAL_SECONDS = 60
HOME_DATA = Path(DEFAULT_DATA).expanduser()
HOME_WAS_USED = HOME_DATA.exists()
_told: set[Path] = set()
"""What has failed a test of this process: one is enough."""
SLOW_FOLDERS = {"e2e", "robustness", "scenarios"}
INTERPRETERS = str(Path(sys.base_prefix) / "bin")
if INTERPRETERS not in os.environ["PATH"].split(
    os.pathsep
):  # `python3` is else found as a script of pyenv, at 50 ms a start
    os.environ["PATH"] = os.pathsep.join((INTERPRETERS, os.environ["PATH"]))


def pytest_report_header() -> list[str]:
    """What the server that the tests are given can do of what the stores use."""
    given = os.environ.get(SERVER_VARIABLE)
    return found_of(given) if given else []


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for this worker."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without rows of each kind in turn; on PostgreSQL the stores of the contexts are migrated already."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    given = os.environ.get(SERVER_VARIABLE)
    with external_database(given) if given else migrated_postgres_database(request.getfixturevalue("postgres")) as url:
        yield as_configured(url)


@pytest.fixture
def no_injected_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits fail only where another transaction was really faster."""
    monkeypatch.setattr(portable, "is_injecting", False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, by the limit that it asks for and by its folder, so that no worker ends with it alone."""

    def haste(item: pytest.Item) -> tuple[float, bool]:
        asked = item.get_closest_marker("timeout")
        return -float(asked.args[0] if asked else USUAL_SECONDS), SLOW_FOLDERS.isdisjoint(item.path.parts)

    items.sort(key=haste)


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests make, and less often: thousands of tests and modules stay to the end."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail the test during which the data directory of whoever runs the tests came into being."""
    if not HOME_WAS_USED and HOME_DATA.exists() and HOME_DATA not in _told:
        _told.add(HOME_DATA)
        pytest.fail(f"{HOME_DATA} came into being during {item.nodeid}, or beside it: give it POINTSMAN_DATA")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at which isolation commands ran, and loudly, in one line, how many tests were left out and why."""
    terminalreporter.write_line(f"isolation of commands: {available_level()}")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    if reasons:
        causes = "; ".join(f"{count} × {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"{reasons.total()} SKIPPED: {causes}", red=True, bold=True)


def pytest_timeout_set_timer(item: Any, settings: Any) -> bool | None:
    """Extend a test's limit when the machine is busy; None leaves it to pytest-timeout."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    limit = Limit(settings.timeout)

    def ring(_number: int, _frame: Any) -> None:
        __tracebackhide__ = True
        if limit.is_over():
            pytest_timeout.timeout_sigalrm(item, settings)
        else:
            signal.setitimer(signal.ITIMER_REAL, max(limit.left_seconds, 0.001))

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True
