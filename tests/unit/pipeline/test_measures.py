"""Stages that went on without a proof are counted, once each, and those that wait for a person are not."""

import pytest

from pointsman.services.pipeline import metrics
from pointsman.services.pipeline.domain.enums import Policy
from pointsman.services.pipeline.store.measures import measure
from tests.unit.pipeline.driver import Drive, at_barrier, said, start


def forced(drive: Drive) -> float:
    """By how much the events of a pipeline move the number of stages that were forced on for want of retries."""
    counter = metrics.forced_stages.labels("retry-exhausted")
    before = counter._value.get()
    for event in drive.events:
        measure(event)
    return float(counter._value.get() - before)


def at_a_barrier(policy: Policy) -> Drive:
    """REVIEW has failed as often as it may, TEST passes; REVIEW is once told that it may not go back."""
    drive = at_barrier(policy=policy)
    for _ in range(3):
        drive.complete("REVIEW", said("FAIL", "BARRIER"))
        drive.complete("TEST")
        drive.complete("DEV")
    drive.complete("REVIEW", said("FAIL", "DEV"))
    drive.complete("TEST")
    return drive


def alone(policy: Policy) -> Drive:
    drive = start("ui-only", policy=policy)
    drive.complete("DESIGN")
    drive.complete("DEV")
    for _ in range(3):
        drive.complete("QA", said("FAIL"))
        drive.complete("DEV")
    drive.complete("QA", said("FAIL"))
    return drive


@pytest.mark.parametrize("driven", [at_a_barrier, alone])
def test_a_stage_without_retries_is_counted_when_the_pipeline_goes_on(driven: object) -> None:
    assert callable(driven)
    assert forced(driven(Policy.SEED)) == 1
    assert forced(driven(Policy.STRICT)) == 0


def test_a_member_without_retries_is_not_counted_when_the_pipeline_goes_back() -> None:
    drive = at_barrier()
    for _ in range(3):
        drive.complete("REVIEW", said("FAIL"))
        drive.complete("TEST")
        drive.complete("DEV")
    drive.complete("REVIEW", said("FAIL", "DEV"))
    drive.complete("TEST", said("FAIL"))
    assert forced(drive) == 0
