"""A few seeds of the simulation in every test run; `make simulate` does the many."""

import json
import subprocess
import sys

from tests.helpers.limits import scaled


def test_a_few_seeds_keep_every_promise_are_done_again_exactly_and_planted_bugs_are_found() -> None:
    command = [sys.executable, "-m", "tests.robustness.simulation", "--short"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["violations"] == []
    assert told["same_again"]
    assert len(told["planted_bugs_found"]) >= 5
    assert all(told["planted_bugs_found"].values()), told["planted_bugs_found"]
    assert told["transitions"] > 300
    assert told["deaths"] > 0


def test_seeds_are_shared_out_among_processes_as_the_campaign_does() -> None:
    command = [sys.executable, "-m", "tests.robustness.simulation", "--seeds", "4", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(120))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["seeds"], told["violated"]) == (4, 0)
