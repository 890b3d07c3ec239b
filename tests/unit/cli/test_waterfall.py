"""The waterfall of a run: its tree, whom it waited for, how often it tried again, and what set its length."""

import json
from typing import Any

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.services.orchestrator.domain.event_types import EVENTS
from pointsman.services.orchestrator.wire.encode.transitions import run_event
from pointsman.tracing.waterfall import critical_path, draw, format_duration, summary, tree_of, waits

DAY = 86_400


def row(seconds: float, event: str, source: str, target: str, **payload: Any) -> Transition:
    made = Transition(entity_id="run_1", kind="run", event=event, from_state=source, to_state=target)
    made.payload_json = json.dumps(payload)
    if event in EVENTS:
        made.run.CopyFrom(run_event(event, made.payload_json, whole=False))
    made.at.FromMicroseconds(int(seconds * 1_000_000))
    return made


def staged(seconds: float, event: str, **payload: Any) -> Transition:
    made = row(seconds, event, "ACTIVE", "ACTIVE", **payload)
    made.entity_id, made.kind = "pipe_1", "pipeline"
    return made


RUN = [
    row(0, "submitted", "", "BOOT"),
    row(1, "auto", "BOOT", "INTAKE"),
    row(1, "asked", "INTAKE", "INTAKE", question={"question_id": "q1", "kind": "LOW_CONFIDENCE"}),
    row(1 + 2 * DAY, "answered", "INTAKE", "INTAKE", question_id="q1", reply="CLARIFIED"),
    row(1 + 2 * DAY, "intake_ok", "INTAKE", "CODER_EXEC"),
    row(2 + 2 * DAY, "peer_called", "CODER_EXEC", "CODER_EXEC", call_id="c1", call="pipeline.start"),
    row(3 + 2 * DAY, "pipeline_advanced", "CODER_EXEC", "CODER_EXEC", call_id="c1"),
    row(3 + 2 * DAY, "assigned", "CODER_EXEC", "CODER_EXEC", assignment={"assignment_id": "a1", "purpose": "STAGE"}),
    row(8 + 2 * DAY, "assignment_retried", "CODER_EXEC", "CODER_EXEC", assignment_id="a1", attempt=1),
    row(23 + 2 * DAY, "assignment_ended", "CODER_EXEC", "CODER_EXEC", assignment_id="a1", end="DONE"),
    row(24 + 2 * DAY, "pass", "CODER_EXEC", "COMPLETE"),
]
PIPELINE = [
    staged(3 + 2 * DAY, "PIPELINE_STARTED"),
    staged(3 + 2 * DAY, "STAGE_DELEGATED", stage="DEV", number=1),
    staged(13 + 2 * DAY, "STAGE_COMPLETED", stage="DEV", number=1),
    staged(13 + 2 * DAY, "BARRIER_WAITING", group="post-dev", stage="TEST"),
    staged(20 + 2 * DAY, "BARRIER_RESOLVED", group="post-dev"),
    staged(20 + 2 * DAY, "STAGE_RETRY", stage="REVIEW"),
]


def test_waiting_is_told_by_cause_and_never_counted_twice() -> None:
    whole = tree_of(RUN, {"pipe_1": PIPELINE})
    found = {cause: nanoseconds / 1e9 for cause, nanoseconds in waits(whole).items()}
    assert found == {"person": 2 * DAY, "peer": 1, "agent": 20, "barrier": 7}


def test_the_tree_has_stays_with_questions_assignments_and_pipelines_inside() -> None:
    whole = tree_of(RUN, {"pipe_1": PIPELINE})
    inside = {stay.label: [child.label for child in stay.children] for stay in whole.children}
    assert inside == {
        "BOOT": [],
        "INTAKE": ["question LOW_CONFIDENCE"],
        "CODER_EXEC": ["call pipeline.start", "assignment STAGE", "pipeline pipe_1"],
    }
    pipeline = whole.children[2].children[2]
    assert [child.label for child in pipeline.children] == ["stage DEV", "barrier post-dev"]
    assert (whole.retries, whole.children[2].children[1].retries, pipeline.retries) == (2, 1, 1)


def test_the_critical_path_adds_up_to_the_whole_and_names_the_longest_wait_first() -> None:
    whole = tree_of(RUN, {"pipe_1": PIPELINE})
    path = critical_path(whole)
    assert sum(own for _, own in path) == whole.length_ns
    assert max(path, key=lambda item: item[1])[0].label == "question LOW_CONFIDENCE"
    assert "critical path  question LOW_CONFIDENCE 2.0 d (99 %)" in summary(whole)[2]


def test_every_line_has_its_place_on_one_scale() -> None:
    lines = draw(tree_of(RUN, {"pipe_1": PIPELINE}))
    assert len(lines) == 10
    assert lines[0].count("█") == 40
    assert all(line.index("|") == lines[0].index("|") for line in lines)
    assert "░" in next(line for line in lines if "question" in line)
    assert lines[-1].lstrip().startswith("2.0 d")


def test_an_open_question_waits_until_now() -> None:
    whole = tree_of(RUN[:3], {})
    assert waits(whole) == {"person": 0}
    assert tree_of([*RUN[:3], row(61, "risks_noted", "INTAKE", "INTAKE")], {}).length_ns == 61 * 10**9


def test_times_are_shown_in_the_unit_that_people_use() -> None:
    assert [format_duration(int(s * 1e9)) for s in (0.0123, 119, 300, 7200, 3 * DAY)] == [
        "0.012 s", "119.000 s", "5.0 min", "2.0 h", "3.0 d",
    ]  # fmt: skip


def entered(seconds: float, event: str, source: str, target: str) -> Transition:
    made = row(seconds + 3 * DAY, event, source, target)
    made.entity_id, made.kind = "entry_1", "entry"
    return made


def test_the_way_into_a_branch_is_part_of_it_with_what_it_waited_for() -> None:
    entry = [
        entered(0, "enqueued", "", "QUEUED"),
        entered(1, "taken", "QUEUED", "PROVING"),
        entered(3, "proven", "PROVING", "LANDING"),
        entered(4, "proposed", "LANDING", "PROPOSED"),
        entered(9, "changes_requested", "PROPOSED", "WAITING"),
        entered(12, "link_failed", "WAITING", "ASKED"),
        entered(19, "merged", "ASKED", "LANDED"),
    ]
    lines = draw(whole := tree_of(RUN, {"entry_1": entry}))
    shown = [line.split("|")[0].split()[4:] for line in lines[lines.index(next(x for x in lines if "entry_1" in x)) :]]
    assert shown == [
        ["entry", "entry_1"],
        *([state] for state in ["QUEUED", "PROVING", "LANDING", "PROPOSED", "WAITING", "ASKED"]),
    ]
    spent = {cause: nanoseconds // 10**9 for cause, nanoseconds in waits(whole).items()}
    assert (spent["queue"], spent["forge"], spent["person"]) == (1, 5, 2 * DAY + 7)
