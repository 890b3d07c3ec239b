"""Schedules."""

from datetime import datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.orchestrator.v1 import schedule_pb2 as pb
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.rpc.paging import timestamp
from pointsman.services.orchestrator.domain.schedules.model import Schedule, Spec
from pointsman.services.orchestrator.domain.views import ScheduleView
from pointsman.services.orchestrator.wire import enums
from pointsman.services.orchestrator.wire.decode import schedules as decode


def schedule(view: ScheduleView) -> pb.Schedule:
    """A schedule as it is now."""
    it = view.schedule
    return pb.Schedule(
        id=it.schedule_id,
        state=enums.SCHEDULE_STATE.to_wire(it.status),
        spec=_spec(it.spec),
        order=decode.order(it.template),
        next_at=_at(it.next_at) if it.next_at else None,
        live_run_ids=it.live_run_ids,
        starts=_starts(it),
        waiting=map(_at, (*it.starting, *it.backlog)),
        started=it.started,
        missed=it.missed,
        overlapped=it.overlapped,
        refused=it.refused,
        created_by=it.principal,
        reason=it.said,
        seq=view.seq,
        created_at=timestamp(view.created_at_us),
        updated_at=timestamp(view.updated_at_us),
    )


def _spec(it: Spec) -> pb.ScheduleSpec:
    return pb.ScheduleSpec(
        cron=it.cron,
        time_zone=it.time_zone,
        missed=enums.MISSED_POLICY.to_wire(it.missed),
        overlap=enums.OVERLAP_POLICY.to_wire(it.overlap),
        catch_up=Duration(seconds=int(it.catch_up_seconds)),
    )


def _starts(it: Schedule) -> list[pb.ScheduledStart]:
    return [
        pb.ScheduledStart(nominal_at=_at(one.nominal_at), run_id=one.run_id, outcome=one.outcome, reason=one.reason)
        for one in it.starts
    ]


def _at(time: datetime) -> Timestamp:
    return timestamp(to_us(time))
