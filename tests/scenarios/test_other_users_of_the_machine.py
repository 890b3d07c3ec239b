"""Another user of the machine finds nothing in the data directory of a running control plane."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.commands import running

NOBODY = 65534
PYTHON = Path("/usr/bin/python3")
ATTACK = """
import json, os, socket, sys
reached = []
for path in json.loads(sys.argv[1]):
    try:
        if os.path.isdir(path):
            os.listdir(path)
        elif path.endswith(".sock"):
            socket.socket(socket.AF_UNIX).connect(path)
        else:
            open(path, "rb").close()
        reached.append(path)
    except OSError:
        pass
print(json.dumps(reached))
"""
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user"),
    pytest.mark.skipif(not PYTHON.exists(), reason="needs a Python that any user can start"),
]


@pytest.fixture
def data() -> Iterator[Path]:
    """A data directory that does not exist yet, in a folder that anybody can enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"


def reached_by_nobody(paths: list[Path]) -> list[str]:
    """Those of the paths that another user can list, read or connect to."""
    command = [str(PYTHON), "-I", "-S", "-c", ATTACK, json.dumps([str(path) for path in paths])]
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": {}, "cwd": "/"}
    done = subprocess.run(command, capture_output=True, check=True, **as_nobody)  # type: ignore[call-overload]
    found: list[str] = json.loads(done.stdout)
    return found


def test_another_user_reads_no_store_credential_socket_or_assignment(data: Path) -> None:
    with running("up", "--port", "0", POINTSMAN_DATA=str(data)) as plane:
        plane.line_with(" up at ")
        paths = [data, *data.rglob("*")]
        assert len(paths) > 4
        assert reached_by_nobody(paths) == []
        data.chmod(0o755)
        assert str(data) in reached_by_nobody(paths)
        assert not any("credential" in path or path.endswith(".sock") for path in reached_by_nobody(paths))
