"""Every step of the seed's onStageComplete is an event of the timeline, in the order in which it is taken."""

import json

from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.enums import EventName
from pointsman.services.pipeline.formats.state_file_reader import read_state_file
from pointsman.services.pipeline.formats.state_file_writer import write_state_file
from tests.unit.pipeline.driver import START, STRICT, Drive, at_barrier, said, start


def failing_until_it_is_forced_on() -> Drive:
    drive = start("ui-only")
    drive.complete("DESIGN", ())
    drive.complete("DEV")
    for _ in range(3):
        drive.complete("QA", said("FAIL", "NEXT", severity="HIGH"))
        drive.complete("DEV")
    drive.complete("QA", said("FAIL", severity="HIGH"))
    return drive


def silent_at_a_barrier() -> Drive:
    drive = at_barrier()
    for _ in range(3):
        drive.complete("TEST", ())
    drive.fire("barrier:post-dev")
    drive.complete("REVIEW")
    drive.do(commands.CleanUp("p", 0))
    return drive


def stopped_by_a_person() -> Drive:
    drive = start("review-only", policy=STRICT)
    for _ in range(3):
        drive.complete("REVIEW", ())
    drive.do(commands.RestartFrom("p", "REVIEW"))
    drive.delegate("REVIEW")
    drive.put("REVIEW", "a" * 64)
    drive.do(commands.CancelPipeline("p"))
    return drive


def skipped() -> Drive:
    drive = start("fix")
    drive.do(commands.SkipStage("p", "DEV"))
    return drive


def aborted() -> Drive:
    drive = start("fix")
    drive.complete("DEV", said("FAIL", "ABORT"))
    return drive


def imported() -> Drive:
    drive = Drive()
    state_json, barrier_json = write_state_file("p", start("fix").pipeline)
    drive.do(commands.ImportPipeline("p", read_state_file(state_json, barrier_json, "", START).imported))
    assert json.loads(state_json)["version"] == 4
    return drive


def test_every_step_is_an_event_of_the_timeline() -> None:
    drives = (failing_until_it_is_forced_on, silent_at_a_barrier, stopped_by_a_person, skipped, aborted, imported)
    assert {name for drive in drives for name in drive().names()} == set(EventName)


def test_a_failure_is_told_in_the_order_in_which_it_is_handled() -> None:
    drive = start("ui-only")
    drive.complete("DESIGN")
    drive.complete("DEV")
    before = len(drive.events)
    drive.complete("QA", said("FAIL", "NEXT"))
    assert drive.names()[before:] == [
        EventName.ROUTE_CORRECTED,
        EventName.STAGE_FAILED,
        EventName.REFLECTION_WRITTEN,
        EventName.STAGE_RETRY,
        EventName.STAGE_DELEGATED,
    ]
