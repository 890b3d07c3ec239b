"""Runs real test runners on small trees, through their adapters."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pointsman.proof.adapters.instrument import SelectedTests, instrument, prepare_place, read_report
from pointsman.proof.results import TestReport
from tests.helpers.limits import scaled

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
UNITTEST = (sys.executable, "-m", "unittest")


def write(tree: Path, files: Mapping[str, str]) -> Path:
    """Writes files below a tree."""
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


def needs(program: str) -> None:
    """Skips a test where a toolchain is missing."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def report(
    tree: Path, command: Sequence[str], scripts: Mapping[str, str] | None = None, selected: SelectedTests | None = None
) -> tuple[TestReport, int]:
    """Runs a command through its adapter; its report and exit code."""
    place = prepare_place(tree.parent / f"{tree.name}-reports", "n0")
    run = instrument(command, place, scripts or {}, selected)
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "RUSTUP_HOME", "CARGO_HOME") if key in os.environ}
    ended = subprocess.run(
        run.command,
        cwd=tree,
        env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **run.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=scaled(50),
        check=False,
    )
    return read_report(run, tree, ended.stdout), ended.returncode


def outcomes(found: TestReport) -> dict[str, str]:
    """Ids and outcomes."""
    return {test.id: str(test.outcome) for test in found.tests.values()}
