"""Limits of tests follow the machine's load, and nothing beside them measures time."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.helpers import limits
from tests.helpers.limits import MAX_SLOWDOWN, Gauge, Limit, scaled, within

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
MEASURES = ("bench", "acceptance", "helpers/limits.py", "unit/test_limits.py")
REPORTS = (
    "robustness/abuse/__main__.py", "robustness/faults/campaign.py", "robustness/faults/cluster.py",
    "robustness/faults/schedule.py", "robustness/overload/__main__.py", "robustness/overload/heartbeats.py",
    "robustness/overload/runs.py", "robustness/overload/tally.py", "robustness/simulation/__main__.py",
)  # fmt: skip
"""Campaigns that are started by hand and say how long things took."""
CLOCK = re.compile(r"time\.(monotonic|perf_counter|time)\(")
BARE = re.compile(
    r"asyncio\.timeout\([\d.]+\)|asyncio\.wait_for\(|\btimeout=(?!STREAM_SECONDS)(?:[1-9][\d_.]*|[A-Z_]+)\b(?!\()"
)
"""A limit that no load extends. Those below a second, and of streams that never end, are there to be reached."""
PROGRAMS = ("robustness/cheats/attacks_on_processes.py", "unit/proof/test_attacks.py", "unit/proof/test_repeat.py")
"""Files with programs as text, which proofs run and which may read a clock."""
SIMULATED = "robustness/simulation/"
"""Fake time: its limits are events of the simulation."""


class Machine:
    """How busy a made-up machine is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.load, self.probe, self.now = 0.0, 1.0, 1000.0
        monkeypatch.setattr(limits, "monotonic", lambda: self.now)
        monkeypatch.setattr(limits, "_load_per_core", lambda: self.load)
        monkeypatch.setattr(limits, "_probe", lambda: self.probe)
        self.gauge = Gauge()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_on_an_idle_machine_a_limit_is_as_long_as_it_says(machine: Machine) -> None:
    limit = Limit(60, machine.gauge)
    machine.now += 59.9
    assert not limit.is_over()
    machine.now += 0.1
    assert limit.is_over()


@pytest.mark.parametrize(("load", "probe"), [(4.0, 1.0), (0.0, 4.0)])
def test_a_limit_lasts_longer_the_busier_the_machine_was_or_is(load: float, probe: float, machine: Machine) -> None:
    limit = Limit(60, machine.gauge)
    machine.load, machine.probe = load, probe
    machine.now += 60
    assert not limit.is_over()
    assert limit.left_seconds == 180
    machine.now += 180
    assert limit.is_over()


def test_a_machine_that_gets_busier_extends_a_limit_again_and_again(machine: Machine) -> None:
    limit = Limit(60, machine.gauge)
    for machine.load in (2.0, 3.0, 4.0):
        machine.now += 60
        assert not limit.is_over()
    machine.now += 60
    assert limit.is_over()


def test_what_hangs_ends_however_busy_the_machine_is(machine: Machine) -> None:
    limit = Limit(60, machine.gauge)
    machine.load = 1000.0
    machine.now += 60 * MAX_SLOWDOWN
    assert limit.is_over()


def test_a_limit_for_others_is_as_long_as_the_load_of_the_moment_asks_for(machine: Machine) -> None:
    machine.load = 6.0
    assert scaled(5, machine.gauge) == 30
    machine.load = 1.0
    assert scaled(5, machine.gauge) == 30, "a value of this second is not measured again"
    machine.now += limits.FRESH_SECONDS + 1
    assert scaled(5, machine.gauge) == 5


class Busy(Gauge):
    """A machine that is busy until it was asked so many times."""

    def __init__(self, *slowdowns: float) -> None:
        super().__init__()
        self._slowdowns = list(slowdowns)

    def slowdown(self) -> float:
        return self._slowdowns.pop(0) if len(self._slowdowns) > 1 else self._slowdowns[0]


async def test_a_block_is_given_more_time_on_a_busy_machine() -> None:
    async with within(0.01, Busy(10_000.0)):
        await asyncio.sleep(0.05)


async def test_a_block_that_hangs_is_ended_once_its_extended_time_is_over() -> None:
    busy = Busy(2.0, 3.0)
    with pytest.raises(TimeoutError):
        async with within(0.01, busy):
            await asyncio.Event().wait()
    assert busy._slowdowns == [3.0], "it was asked how busy the machine is"


def test_real_gauges_say_at_least_one_and_at_most_the_ceiling() -> None:
    assert 1.0 <= Gauge().slowdown() <= MAX_SLOWDOWN


def test_a_test_is_given_more_time_on_a_busy_machine_and_one_that_hangs_is_ended(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(
        """
        from tests.conftest import pytest_timeout_set_timer
        from tests.helpers import limits

        slowdowns = iter([10_000.0])
        limits.GAUGE.slowdown = lambda: next(slowdowns, 1.0)
        """
    )
    pytester.makepyfile(
        """
        import threading

        def test_slow():
            threading.Event().wait(0.3)

        def test_hangs():
            threading.Event().wait()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-o", "timeout=0.1")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*test_hangs*", "*Timeout (>0.1s) from pytest-timeout*"])


def test_nothing_else_in_the_tests_reads_a_clock_or_has_a_limit_of_its_own() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS).as_posix()
        if name.startswith(MEASURES):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            reads = CLOCK.search(line) and name not in (*REPORTS, *PROGRAMS)
            if reads or (BARE.search(line) and not name.startswith(SIMULATED)):
                found.append(f"{name}:{number}: {line.strip()}")
    assert found == []
