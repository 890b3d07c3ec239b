"""Schedules: runs at the times of a calendar."""

from collections.abc import AsyncIterator, Sequence

from pointsman.api.orchestrator.v1 import schedule_pb2 as pb
from pointsman.api.orchestrator.v1.schedule_pb2_grpc import ScheduleServiceStub
from pointsman.client.calls import Calls, new_request_id
from pointsman.client.runs import Order, submit_request


class Schedules:
    """ScheduleService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = ScheduleServiceStub(calls.channel)

    async def create(self, order: Order, spec: pb.ScheduleSpec, request_id: str = "") -> pb.Schedule:
        """Begins to start a run of the order at every time."""
        own_id = request_id or new_request_id()
        request = pb.CreateScheduleRequest(request_id=own_id, spec=spec, order=submit_request(order, own_id))
        return (await self._calls.mutate(self._stub.CreateSchedule, request)).schedule

    async def get(self, schedule_id: str) -> pb.Schedule:
        """A schedule as it is now."""
        request = pb.GetScheduleRequest(schedule_id=schedule_id)
        return (await self._calls.call(self._stub.GetSchedule, request)).schedule

    async def all(self, states: Sequence[pb.ScheduleState.ValueType] = ()) -> AsyncIterator[pb.Schedule]:
        """Schedules, newest first; without states, those that are not deleted."""
        async for page in self._calls.pages(self._stub.ListSchedules, pb.ListSchedulesRequest(states=states)):
            for schedule in page.schedules:
                yield schedule

    async def pause(self, schedule_id: str, reason: str = "", request_id: str = "") -> pb.Schedule:
        """Starts no more runs for now."""
        request = pb.PauseScheduleRequest(request_id=request_id, schedule_id=schedule_id, reason=reason)
        return (await self._calls.mutate(self._stub.PauseSchedule, request)).schedule

    async def resume(self, schedule_id: str, request_id: str = "") -> pb.Schedule:
        """Goes on with the next time."""
        request = pb.ResumeScheduleRequest(request_id=request_id, schedule_id=schedule_id)
        return (await self._calls.mutate(self._stub.ResumeSchedule, request)).schedule

    async def trigger(self, schedule_id: str, request_id: str = "") -> pb.Schedule:
        """Starts a run now, besides the calendar."""
        request = pb.TriggerScheduleRequest(request_id=request_id, schedule_id=schedule_id)
        return (await self._calls.mutate(self._stub.TriggerSchedule, request)).schedule

    async def delete(self, schedule_id: str, reason: str = "", request_id: str = "") -> pb.Schedule:
        """Starts no more runs for good; live ones go on."""
        request = pb.DeleteScheduleRequest(request_id=request_id, schedule_id=schedule_id, reason=reason)
        return (await self._calls.mutate(self._stub.DeleteSchedule, request)).schedule
