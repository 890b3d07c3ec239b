"""Values to text and back, from many threads at once."""

import subprocess
import sys
from pathlib import Path

from tests.helpers.limits import scaled

SCRIPT = Path(__file__).with_name("decoders_in_threads.py")


def test_types_that_many_threads_meet_for_the_first_time_do_not_end_the_process() -> None:
    finished = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False, timeout=scaled(50)
    )
    assert finished.returncode == 0, f"exit {finished.returncode}: {finished.stderr}"
