"""Work of a run that went back because of a provider's limit: how events change it."""

from pointsman.services.orchestrator.domain.limit_events import AccountPaused, WorkTakenUp
from pointsman.services.orchestrator.domain.run import Rest, Run


def apply_paused(run: Run, data: AccountPaused) -> Run:
    """The work rests with the account, if it is not done by now."""
    if data.assignment_id not in run.assignments:
        return run
    return run.change(resting={**run.resting, data.assignment_id: Rest(data.account, data.until, data.kind)})


def apply_taken_up(run: Run, data: WorkTakenUp) -> Run:
    """Somebody works on it again."""
    return without(run, data.assignment_id)


def without(run: Run, assignment_id: str) -> Run:
    """The run, with nothing said about the rest of this work."""
    if assignment_id not in run.resting:
        return run
    return run.change(resting={key: rest for key, rest in run.resting.items() if key != assignment_id})
