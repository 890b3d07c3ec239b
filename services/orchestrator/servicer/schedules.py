"""ScheduleService: messages that become runs at the times of a calendar."""

from typing import Any

from pointsman.api.orchestrator.v1 import schedule_pb2 as pb
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.rpc.paging import page_key, page_size, page_token
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain.schedules import commands
from pointsman.services.orchestrator.domain.schedules.enums import ScheduleState
from pointsman.services.orchestrator.domain.schedules.model import schedule_id_for
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.submit import SubmitMessage
from pointsman.services.orchestrator.wire import decode, encode, enums

END_OF_TIME = 2**62
SHOWN = (ScheduleState.ACTIVE, ScheduleState.PAUSED)


class ScheduleServicer:
    """ScheduleService."""

    def __init__(self, store: OrchestratorStore, submit: SubmitMessage, settings: OrchestratorSettings) -> None:
        self._schedules = store.schedules
        self._submit = submit
        self._limit = settings.max_schedules

    async def CreateSchedule(self, request: pb.CreateScheduleRequest, caller: Caller) -> pb.CreateScheduleResponse:
        """Begin to start runs at times."""
        spec, template = decode.schedules.spec(request.spec), decode.schedules.template(request.order)
        schedule_id = schedule_id_for(caller.request_scope, request.request_id)
        await self._submit.rehearse(decode.schedules.order_of(template, schedule_id, request.request_id), caller)
        command = commands.Create(schedule_id, caller.project, spec, template, caller.principal, self._limit)
        return pb.CreateScheduleResponse(schedule=await self._changed(command, caller))

    async def GetSchedule(self, request: pb.GetScheduleRequest, caller: Caller) -> pb.GetScheduleResponse:
        """A schedule as it is now."""
        return pb.GetScheduleResponse(schedule=await self._schedule(caller, request.schedule_id))

    async def ListSchedules(self, request: pb.ListSchedulesRequest, caller: Caller) -> pb.ListSchedulesResponse:
        """Schedules, newest first."""
        key = page_key(request.page.page_token, int, str) or (END_OF_TIME, "")
        states = tuple(map(str, enums.SCHEDULE_STATE.all_to_domain(request.states) or SHOWN))
        size = page_size(request.page)
        found = await self._schedules.page(caller.project, states, (int(key[0]), str(key[1])), size)
        last = found[-1] if len(found) == size else None
        token = page_token(last.created_at_us, last.schedule.schedule_id) if last else ""
        return pb.ListSchedulesResponse(schedules=map(encode.schedules.schedule, found), next_page_token=token)

    async def PauseSchedule(self, request: pb.PauseScheduleRequest, caller: Caller) -> pb.PauseScheduleResponse:
        """No more runs for now."""
        command = commands.Pause(request.schedule_id, request.reason)
        return pb.PauseScheduleResponse(schedule=await self._changed(command, caller))

    async def ResumeSchedule(self, request: pb.ResumeScheduleRequest, caller: Caller) -> pb.ResumeScheduleResponse:
        """Go on with the next time."""
        return pb.ResumeScheduleResponse(schedule=await self._changed(commands.Resume(request.schedule_id), caller))

    async def TriggerSchedule(self, request: pb.TriggerScheduleRequest, caller: Caller) -> pb.TriggerScheduleResponse:
        """A run now."""
        return pb.TriggerScheduleResponse(schedule=await self._changed(commands.Trigger(request.schedule_id), caller))

    async def DeleteSchedule(self, request: pb.DeleteScheduleRequest, caller: Caller) -> pb.DeleteScheduleResponse:
        """No more runs for good."""
        command = commands.Delete(request.schedule_id, request.reason)
        return pb.DeleteScheduleResponse(schedule=await self._changed(command, caller))

    async def _changed(self, command: Any, caller: Caller) -> pb.Schedule:
        answer = await self._schedules.ledger.submit(caller, command)
        return await self._schedule(caller, answer.schedule_id)

    async def _schedule(self, caller: Caller, schedule_id: str) -> pb.Schedule:
        return encode.schedules.schedule(await self._schedules.view(caller.project, schedule_id))
