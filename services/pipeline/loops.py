"""Fires the timers of pipelines: barriers time out, ended pipelines are cleaned up."""

from pointsman.services.chassis.core.caller import engine_caller
from pointsman.services.chassis.engine.deliveries import FiredTimer
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.decision import CLEAN_UP_SECONDS, CLEAN_UP_TIMER, BarrierDue
from pointsman.services.pipeline.store import PipelineStore


class PipelineTimers:
    """Turns due timers into commands."""

    def __init__(self, pipelines: PipelineStore) -> None:
        self._pipelines = pipelines

    async def fire(self, timer: FiredTimer) -> None:
        """Submits the command of a timer, and deletes the timer, in one commit."""
        caller = engine_caller(timer.project, timer.traceparent, timer.timer_id)
        await self._pipelines.ledger.submit(caller, command_for(timer), timer)


def command_for(timer: FiredTimer) -> commands.CleanUp | commands.TimeOutBarrier:
    """The command of a timer."""
    if timer.name == CLEAN_UP_TIMER:
        return commands.CleanUp(timer.entity_id, CLEAN_UP_SECONDS)
    due: BarrierDue = timer.data(BarrierDue)
    return commands.TimeOutBarrier(timer.entity_id, due.group, due.number)
