"""What happens when a schedule's time has come: the tick, the run that it starts, and what the schedule hears of it."""

from pointsman.services.chassis.core.caller import engine_caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.deliveries import FiredTimer, PendingEffect
from pointsman.services.chassis.telemetry.context import new_traceparent
from pointsman.services.orchestrator.domain.origin import Scheduled
from pointsman.services.orchestrator.domain.run import Run, run_id_for
from pointsman.services.orchestrator.domain.schedules import commands
from pointsman.services.orchestrator.domain.schedules.enums import ScheduleState
from pointsman.services.orchestrator.domain.schedules.machine import StartRun
from pointsman.services.orchestrator.domain.schedules.model import Schedule, start_key
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.submit import SubmitMessage
from pointsman.services.orchestrator.wire import decode

_GONE = frozenset({Reason.STATE_FORBIDS, Reason.NOT_FOUND})


class Scheduling:
    """Starts the runs of schedules; every step can be repeated after a crash without a second run."""

    def __init__(self, store: OrchestratorStore, submit: SubmitMessage) -> None:
        self._store = store
        self._submit = submit

    async def come_due(self, timer: FiredTimer) -> None:
        """A time of a schedule is over; each is a trace of its own, for a schedule has no end."""
        caller = engine_caller(timer.project, new_traceparent(timer.timer_id), timer.timer_id)
        await self._store.schedules.ledger.submit(caller, commands.ComeDue(timer.entity_id), timer)

    async def start_run(self, effect: PendingEffect, data: StartRun) -> None:
        """Start the run of a time, unless the schedule was stopped meanwhile; a second try finds it there."""
        schedule = (await self._store.schedules.view(effect.project, effect.entity_id)).schedule
        request_id = start_key(schedule.schedule_id, data.nominal_at)
        run_id = run_id_for(effect.project, request_id)
        if _is_stopped(schedule, data) and not await self._is_there(effect.project, run_id):
            await self.refuse(effect, data, f"the schedule was {schedule.status.lower()} before it could start")
            return
        traceparent = new_traceparent(run_id)
        order = decode.schedules.order_of(schedule.template, schedule.schedule_id, request_id)
        caller = engine_caller(effect.project, traceparent, f"{effect.effect_id}:other")
        started = await self._submit.submit(order, caller, Scheduled(schedule.schedule_id, data.nominal_at))
        if started.run is None:
            await self.refuse(
                effect, data, f"the router starts no run for it: {', '.join(started.routing.rules)[:200]}"
            )
            return
        own = engine_caller(effect.project, traceparent, effect.effect_id)
        command = commands.RunStarted(schedule.schedule_id, data.nominal_at, started.run.run.run_id)
        await self._store.schedules.ledger.submit(own, command, effect)

    async def _is_there(self, project: str, run_id: str) -> bool:
        try:
            await self._store.view(project, run_id)
        except Refusal as refusal:
            if refusal.reason is not Reason.NOT_FOUND:
                raise
            return False
        return True

    async def refuse(self, effect: PendingEffect, data: StartRun, reason: str) -> None:
        """Tell the schedule that a time has no run, and why."""
        caller = engine_caller(effect.project, effect.traceparent, effect.effect_id)
        command = commands.StartRefused(effect.entity_id, data.nominal_at, reason)
        await self._store.schedules.ledger.submit(caller, command, effect)

    async def run_ended(self, effect: PendingEffect, run: Run) -> None:
        """Tell the schedule how a run of it has ended; one that is forgotten by now does not matter."""
        scheduled = run.order.scheduled
        assert scheduled is not None, "only a run of a schedule tells one"
        command = commands.RunEnded(scheduled.schedule_id, scheduled.nominal_at, run.run_id, str(run.status))
        caller = engine_caller(effect.project, effect.traceparent, f"{effect.effect_id}:other")
        try:
            await self._store.schedules.ledger.submit(caller, command)
        except Refusal as refusal:
            if refusal.reason not in _GONE:
                raise


def _is_stopped(schedule: Schedule, data: StartRun) -> bool:
    return schedule.status is ScheduleState.DELETED or (schedule.status is ScheduleState.PAUSED and not data.asked)
