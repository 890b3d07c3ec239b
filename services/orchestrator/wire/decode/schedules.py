"""What people ask of schedules."""

from google.protobuf import json_format

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as orders
from pointsman.api.orchestrator.v1 import schedule_pb2 as pb
from pointsman.services.chassis.core.errors import Violation, invalid_fields
from pointsman.services.chassis.rpc.paging import seconds_of
from pointsman.services.orchestrator.domain.schedules.calendar import problem_of_cron, problem_of_time_zone
from pointsman.services.orchestrator.domain.schedules.enums import MissedPolicy, OverlapPolicy
from pointsman.services.orchestrator.domain.schedules.model import Spec, Template
from pointsman.services.orchestrator.wire import enums

DAY_SECONDS = 86_400.0
MAX_ORDER_BYTES = 262_144
LABEL = "schedule"
"""The label of every run that a schedule starts: its id."""


def spec(message: pb.ScheduleSpec) -> Spec:
    """At which times; refused with every field that cannot be taken."""
    cron, zone = " ".join(message.cron.split()), message.time_zone or "UTC"
    problems = (("spec.cron", problem_of_cron(cron)), ("spec.time_zone", problem_of_time_zone(zone)))
    if found := tuple(Violation(field, text) for field, text in problems if text):
        raise invalid_fields(found)
    return Spec(
        cron,
        zone,
        enums.MISSED_POLICY.or_default(message.missed, MissedPolicy.ONE),
        enums.OVERLAP_POLICY.or_default(message.overlap, OverlapPolicy.SKIP),
        seconds_of(message.catch_up) or DAY_SECONDS,
    )


def template(order: orders.SubmitRequest) -> Template:
    """What each run is started with; refused where a run that nobody waits for could not go on with it."""
    if found := tuple(Violation(f"order.{field}", text) for field, text in _unfit(order)):
        raise invalid_fields(found)
    stored = orders.SubmitRequest()
    stored.CopyFrom(order)
    stored.request_id = ""
    # a schedule says when something is to be done: a message that could be read both ways is one to act on
    stored.mode_override = stored.mode_override or orders.MODE_OVERRIDE_ACTION
    text = json_format.MessageToJson(stored, preserving_proto_field_name=True, indent=None)
    if len(text.encode()) > MAX_ORDER_BYTES:
        raise invalid_fields((Violation("order", f"is larger than {MAX_ORDER_BYTES} bytes"),))
    return Template(order.message, text)


def _unfit(order: orders.SubmitRequest) -> list[tuple[str, str]]:
    refused = (
        (order.session_id, "session_id", "is empty in a schedule: its runs belong to no session"),
        (order.crew.reserved, "crew.reserved", "cannot be: nobody knows the id of a run that is not there yet"),
        (order.brings_plan, "brings_plan", "cannot be: nobody is there to hand the plan in"),
        (
            order.mode_override == orders.MODE_OVERRIDE_ANSWER,
            "mode_override",
            "cannot be ANSWER: a schedule starts runs",
        ),
        (LABEL in order.labels, "labels", f"'{LABEL}' is set by the schedule itself"),
        (len(order.labels) >= 32, "labels", "at most 31 in a schedule, which adds its own"),
    )
    return [(field, text) for is_refused, field, text in refused if is_refused]


def order(template: Template) -> orders.SubmitRequest:
    """A template as Submit takes it; fields of a later version are left out."""
    return json_format.Parse(template.order_json, orders.SubmitRequest(), ignore_unknown_fields=True)


def order_of(template: Template, schedule_id: str, request_id: str) -> orders.SubmitRequest:
    """The order of one run."""
    one = order(template)
    one.request_id = request_id
    one.labels[LABEL] = schedule_id
    return one
