"""Named steps of a landing, at which a test may kill the integrator for real."""

import os
import signal
from collections.abc import Callable
from enum import StrEnum

ARMED_BY = "POINTSMAN_LANDING_CRASH"
"""`name` or `name:n`: die the n-th time that the step is reached."""


class Step(StrEnum):
    """Between every two things that leave the integrator."""

    TAKEN = "taken"
    SPLIT = "split"
    FETCHED = "fetched"
    PLACED = "placed"
    PROVED = "proved"
    CANDIDATE_REPORTED = "candidate_reported"
    PUSHED = "pushed"
    LANDED_REPORTED = "landed_reported"
    BRANCH_PUSHED = "branch_pushed"
    REQUEST_LOOKED_UP = "request_looked_up"
    REQUEST_OPENED = "request_opened"
    REQUEST_DESCRIBED = "request_described"
    REQUEST_REPORTED = "request_reported"
    FORGE_READ = "forge_read"
    COMMENT_LOOKED_UP = "comment_looked_up"
    COMMENTED = "commented"


Reach = Callable[[Step], None]


def armed_by_environment() -> Reach:
    """Dies at the step that the environment names; does nothing where it names none."""
    name, _, count = os.environ.get(ARMED_BY, "").partition(":")
    left = int(count or 1)

    def reach(step: Step) -> None:
        nonlocal left
        if step == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reach
