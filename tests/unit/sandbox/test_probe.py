"""The level is what a probe inside shows: not what is installed, and less where something gets through."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pointsman._shared
import pointsman.sandbox
from pointsman.sandbox import (
    Level,
    TooWeak,
    UnknownLevel,
    available_level,
    bubblewrap,
    landlock,
    level_named,
    probe,
    require,
    seccomp,
    supports_grades,
)
from pointsman.sandbox.level import MAX_LEVEL_SETTING
from pointsman.sandbox.probe import ATTEMPTS, BEYOND_LANDLOCK, _probe_levels

NOBODY = 65534
PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
from pointsman.sandbox import probe
report = probe()
print(report.level, *report.missing, *(finding.name for finding in report.findings if not finding.refused))
"""


def test_a_level_that_holds_refuses_all_that_it_promises() -> None:
    report = probe()
    excused = {Level.NONE: set(ATTEMPTS), Level.LANDLOCK: BEYOND_LANDLOCK}.get(report.level, set())
    assert {finding.name for finding in report.findings if not finding.refused} <= excused
    assert report.findings


def test_a_setting_forces_a_lower_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_LEVEL_SETTING, "none")
    assert available_level() is Level.NONE
    assert "credential" in {finding.name for finding in probe().findings if not finding.refused}
    with pytest.raises(TooWeak, match="isolation none, and landlock is required"):
        require(Level.LANDLOCK)
    monkeypatch.setenv(MAX_LEVEL_SETTING, "bunker")
    with pytest.raises(UnknownLevel, match="choose one of none, landlock, namespaces, container"):
        available_level()


def test_only_isolated_results_are_graded() -> None:
    assert [level for level in Level if supports_grades(level)] == [Level.LANDLOCK, Level.NAMESPACES, Level.CONTAINER]
    assert level_named(" Landlock ") is Level.LANDLOCK


@pytest.mark.skipif(available_level() < Level.LANDLOCK, reason="there is no Landlock here")
async def test_a_bubblewrap_that_does_not_start_leaves_landlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "program", lambda: str(broken))
    report = await _probe_levels(Level.NAMESPACES, None)
    assert report.level is Level.LANDLOCK
    assert "No permissions to create new namespace" in report.missing[0]


@pytest.mark.skipif(available_level() < Level.LANDLOCK, reason="there is no Landlock here")
async def test_a_level_through_which_the_probe_gets_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "is_supported", lambda: False)
    report = await _probe_levels(Level.LANDLOCK, None)
    assert report.level is Level.NONE
    assert report.missing == ("landlock: the probe could connect to a Unix socket",)


async def test_a_machine_with_nothing_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    report = await _probe_levels(Level.NAMESPACES, None)
    assert report.level is Level.NONE
    assert [reason.partition(":")[0] for reason in report.missing] == ["namespaces", "landlock"]


@pytest.fixture
def package() -> Iterator[Path]:
    """The sandbox where any user can read it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for room in (Path(pointsman.sandbox.__file__).parent, Path(pointsman._shared.__file__).parent):
            shutil.copytree(room, place / "pointsman" / room.name)
        (place / "pointsman" / "__init__.py").touch()
        for path in (place, *place.rglob("*")):
            path.chmod(0o755)
        yield place


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python that any user can start")
@pytest.mark.parametrize("level", [level for level in Level if Level.NONE < level <= available_level()])
def test_an_ordinary_user_is_isolated_as_root_is(level: Level, package: Path) -> None:
    command = ["/usr/bin/python3", "-I", "-B", "-c", PROBE, str(package)]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", MAX_LEVEL_SETTING: str(level)}
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": environment, "cwd": "/"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **as_nobody)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(level), done.stdout
