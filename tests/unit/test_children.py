"""What tests start is gone when the run of the tests is killed."""

import subprocess
import sys
from pathlib import Path

from tests.helpers.children import parent_of
from tests.helpers.eventually import eventually_now

SCRIPT = """
import os, signal
from tests.helpers.children import end_with_parent
told, tell = os.pipe()
child = os.fork()
if not child:
    end_with_parent()
    os.write(tell, b"ready")
    signal.pause()
os.read(told, 5)
print(child, flush=True)
signal.pause()
"""


def test_a_child_that_ends_with_its_parent_is_gone_when_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent_of(child) == parent.pid
        parent.kill()
    eventually_now(lambda: parent_of(child) is None)
