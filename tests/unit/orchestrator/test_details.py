"""Typed details of transitions: every event of a run has its message, read from the JSON that the journal keeps."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.journal.v1 import run_events_pb2 as journal
from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.engine.journal import Transition
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.enums import Purpose, Severity, Trigger
from pointsman.services.orchestrator.domain.event_types import EVENTS
from pointsman.services.orchestrator.domain.model import Plan, Risk
from pointsman.services.orchestrator.wire.decode.documents import document
from pointsman.services.orchestrator.wire.encode.transitions import run_event, transition
from tests.unit.orchestrator.driver import Driver
from tests.unit.orchestrator.stories import STORIES

BOTH, DETAILS = common.TRANSITION_VIEW_UNSPECIFIED, common.TRANSITION_VIEW_DETAILS
LEFT_OUT = {"document", "bundle", "delegation"}
"""Documents stand where their outline does; the accepted bundle is in the run's delivery, a delegation in its pipeline."""


def row(event: str, payload: str) -> Transition:
    where = ("BOOT", "BOOT", payload, "engine", "run_1", "", "d", "local", 1)
    return Transition("run_1", "run", 1, 7, 1_000_000, event, *where)


def test_every_event_has_a_message_with_the_fields_of_its_payload() -> None:
    for name, payload in EVENTS.items():
        field = "transitioned" if name in set(Trigger) else name
        message: Any = journal.RunEvent.DESCRIPTOR.fields_by_name[field].message_type
        stored = {one.name for one in fields(payload)}
        typed = set(message.fields_by_name)
        assert stored - typed - LEFT_OUT == set(), f"{name} has fields without a type"
        assert typed - stored - {"tasks"} == set(), f"{message.name} has fields that no payload has"


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_what_a_journal_says_is_what_its_details_say(story: Callable[[], Driver]) -> None:
    for event in story().journal:
        told = run_event(event.name, to_json(event.data), whole=False)
        name = told.WhichOneof("event")
        assert name == ("transitioned" if isinstance(event.data, events.Transitioned) else event.name)
        _compare(getattr(told, name), json.loads(to_json(event.data)))


def _compare(message: Any, payload: dict[str, Any]) -> None:
    """Every field that the payload has too; absent ones and documents apart."""
    for field in message.DESCRIPTOR.fields:
        stored, typed = payload.get(field.name), getattr(message, field.name)
        if stored is None or field.name in LEFT_OUT or field.enum_type is not None:
            continue
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            assert type(stored)(typed) == stored
            continue
        pairs = zip(typed, stored, strict=True) if field.is_repeated else [(typed, stored)]
        for one, other in pairs:
            _compare(one, other)


def test_documents_come_instead_of_the_payload_where_only_details_are_wanted() -> None:
    whole = work.Plan(tasks=[work.PlanTask(id="T1", name="a task")], confidence=0.9)
    planned = row(
        "planned", to_json(events.Planned(Plan((), (), 0.9, document(whole), risks=(Risk("k", "so", Severity.HIGH),))))
    )
    both, details = transition(planned, BOTH), transition(planned, DETAILS)
    assert both.payload_json == planned.payload
    assert not both.run.planned.plan.HasField("document")
    assert details.payload_json == ""
    assert details.run.planned.plan.document == whole
    assert (
        both.run.planned.plan.risks[0].severity == details.run.planned.plan.risks[0].severity == handoff.SEVERITY_HIGH
    )
    assert both.digest == details.digest == "d"


def test_the_verifiers_findings_are_there_in_both_views() -> None:
    report = work.VerificationReport(tasks=[work.TaskFinding(task_id="T1", accepted=True, conflicts=["a.py"])])
    verified = row("wave_verified", to_json(events.WaveVerified("a" * 40, "", document(report))))
    for view in (BOTH, DETAILS):
        assert list(transition(verified, view).run.wave_verified.tasks) == list(report.tasks)


def test_a_judgement_that_another_judge_makes_is_absent_and_not_false() -> None:
    passed_on = transition(row("task_judged", to_json(events.TaskJudged("T1", "reviewer", accepted=None))), BOTH)
    rejected = transition(row("task_judged", to_json(events.TaskJudged("T1", "reviewer", accepted=False))), BOTH)
    assert not passed_on.run.task_judged.HasField("accepted")
    assert rejected.run.task_judged.HasField("accepted")
    assert not rejected.run.task_judged.accepted


def test_an_older_row_has_empty_fields_and_an_unknown_event_no_details() -> None:
    old = row("assigned", '{"assignment":{"purpose":"PLAN"}}')
    assert transition(old, BOTH).run.assigned.assignment == journal.AssignmentOutline(purpose=str(Purpose.PLAN))
    new = row("of_tomorrow", '{"x":1}')
    assert not transition(new, BOTH).HasField("run")
    assert transition(new, BOTH).payload_json == '{"x":1}'


def test_what_is_secret_in_an_assignment_stays_out_of_its_details() -> None:
    names = set(journal.AssignmentOutline.DESCRIPTOR.fields_by_name)
    assert names.isdisjoint({"nonce", "node_context", "directive"})
