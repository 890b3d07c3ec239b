"""The workflow for GitHub Actions in docs/proof.md: what a runner would do with it, in a fresh clone of a small project.

What is replaced, and nothing else: actions of others (checkout is a clone, the program is on the PATH already, nothing is
uploaded) and the name of the base's branch.
"""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.scenarios.commands import ROOT
from tests.scenarios.test_readme import FILES
from tests.unit.worker.repositories import repository

INSTALL = "uv tool install ./tools/pointsman"
FIXED = {"calc.py": "def add(a, b):\n    return a + b\n"}
EMPTIED = {"tests/test_calc.py": FILES["tests/test_calc.py"].replace("add(1, 2), 3", "3, 3")}


def steps() -> list[dict[str, Any]]:
    """The steps of the workflow, as a runner reads them."""
    (text,) = re.findall(
        r"^```yaml\n(on: pull_request\n.*?)^```$", (ROOT / "docs" / "proof.md").read_text(), re.MULTILINE | re.DOTALL
    )
    found: list[dict[str, Any]] = yaml.safe_load(text)["jobs"]["proof"]["steps"]
    return found


def commands() -> list[str]:
    """What the steps run, on a pull request to main; the program is there already."""
    runs = [step["run"] for step in steps() if "run" in step]
    assert INSTALL in [run.partition("#")[0].strip() for run in runs]
    return [run.replace("${{ github.base_ref }}", "main") for run in runs if not run.startswith(INSTALL)]


def git(folder: Path, *words: str) -> None:
    me = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    subprocess.run(["git", *me, *words], cwd=folder, check=True, capture_output=True)


def pull_request(tmp_path: Path, edits: dict[str, str]) -> Path:
    """A clone as actions/checkout makes it: the merge of a pull request, detached, with another checkout in a folder of it."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    asyncio.run(repository(origin, FILES))
    git(origin, "branch", "-M", "main")
    git(origin, "checkout", "-q", "-b", "change")
    for name, content in edits.items():
        (origin / name).write_text(content)
    git(origin, "commit", "-qam", "change")
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    git(clone, "checkout", "-q", "--detach", "origin/main")
    git(clone, "merge", "-q", "--no-ff", "-m", "merge", "origin/change")
    git(clone, "init", "-q", "tools/pointsman")
    git(clone / "tools" / "pointsman", "commit", "-q", "--allow-empty", "-m", "the program")
    return clone


@pytest.mark.parametrize(("edits", "code", "failed"), [(FIXED, 0, 0), (EMPTIED, 1, 1)], ids=["fixed", "test emptied"])
def test_the_workflow_of_the_docs_judges_a_pull_request(
    tmp_path: Path, edits: dict[str, str], code: int, failed: int
) -> None:
    clone = pull_request(tmp_path, edits)
    (tmp_path / "home").mkdir()
    here = {name: value for name, value in os.environ.items() if not name.startswith(("POINTSMAN_", "XDG_", "OTEL_"))}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\n".join(commands())],
        cwd=clone, env={**here, "HOME": str(tmp_path / "home"), "PATH": path, "CI": "true"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    (kept,) = [step["with"]["path"] for step in steps() if "upload-artifact" in step.get("uses", "")]
    assert ("REFUSED" in done.stdout and "test_adds" in done.stdout) if failed else "PROVEN" in done.stdout
    assert len(list(ElementTree.parse(clone / kept).iter("failure"))) == failed
