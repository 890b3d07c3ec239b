"""The attempts at a run's tasks, as its journal tells them, on the wire."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import evidence_pb2 as pb
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.rpc.paging import timestamp
from pointsman.services.orchestrator.domain import contender_events, events
from pointsman.services.orchestrator.domain.event_types import EVENTS
from pointsman.services.orchestrator.domain.model import Assignment
from pointsman.services.orchestrator.wire.encode.documents import RunDocuments, revive

MAX_ANSWER_BYTES = 1024 * 1024
RUNNING, ACCEPTED, REJECTED, ABANDONED = "running", "accepted", "rejected", "abandoned"


def attempts(documents: RunDocuments, rows: Sequence[Any]) -> list[pb.Attempt]:
    """Every attempt, in the order in which they were started."""
    history = _History(documents)
    for row in rows:
        _ON_EVENT[row.event](history, from_json(row.payload, EVENTS[row.event]), row.at_us)
    return history.finished()


def page(found: Sequence[pb.Attempt], size: int) -> list[pb.Attempt]:
    """As many attempts as fit into one answer, and at least one."""
    taken: list[pb.Attempt] = []
    room = MAX_ANSWER_BYTES
    for attempt in found[:size]:
        room -= attempt.ByteSize()
        if taken and room < 0:
            break
        taken.append(attempt)
    return taken


class _History:
    """What has been read of the journal so far."""

    def __init__(self, documents: RunDocuments) -> None:
        self._documents = documents
        self._all: list[pb.Attempt] = []
        self._latest: dict[str, pb.Attempt] = {}
        self._assigned: dict[str, Assignment] = {}

    def claimed(self, data: events.WaveClaimed, at_us: int) -> None:
        """Attempts begin."""
        for task_id in data.task_ids:
            earlier = self._latest.get(task_id)
            attempt = pb.Attempt(
                task_id=task_id,
                name=self._name(task_id),
                attempt=earlier.attempt + 1 if earlier else 1,
                acceptance_criteria=self._documents.criteria(task_id),
                started_at=timestamp(at_us),
            )
            self._all.append(attempt)
            self._latest[task_id] = attempt

    def assigned(self, data: events.Assigned, at_us: int) -> None:  # noqa: ARG002
        """Whose assignment it is."""
        self._assigned[data.assignment.assignment_id] = data.assignment

    def retried(self, data: events.AssignmentRetried, at_us: int) -> None:
        """Somebody gave an assignment up."""
        assignment = self._assigned[data.assignment_id]
        if assignment.task_id in self._latest:
            about = assignment.stage or str(assignment.purpose)
            self._set_back(
                assignment.task_id, pb.Setback(stage=about, agent_id=data.agent_id, reason=data.error), at_us
            )

    def stage_failed(self, data: events.StageFailed, at_us: int) -> None:
        """A stage failed."""
        self._set_back(data.task_id, pb.Setback(stage=data.stage, agent_id=data.agent_id, reason=data.reason), at_us)

    def handed_in(self, data: events.WorkHandedIn, at_us: int) -> None:  # noqa: ARG002
        """A coder handed in."""
        attempt = self._latest[data.task_id]
        attempt.author = data.work.author
        attempt.work.CopyFrom(revive(data.work.document, type(attempt.work)()))

    def contender_handed_in(self, data: contender_events.ContenderHandedIn, at_us: int) -> None:  # noqa: ARG002
        """One of several coders handed in."""
        one = self._latest[data.task_id].contenders.add(number=data.number, author=data.work.author)
        one.work.CopyFrom(revive(data.work.document, type(one.work)()))

    def contender_proven(self, data: contender_events.ContenderProven, at_us: int) -> None:  # noqa: ARG002
        """The verifier said what it found about one of several."""
        one = self._contender(data.task_id, data.number)
        one.finding.CopyFrom(revive(data.document, work.TaskFinding()))
        one.reason = data.reason

    def contender_chosen(self, data: contender_events.ContenderChosen, at_us: int) -> None:  # noqa: ARG002
        """One of several is the work."""
        self._contender(data.task_id, data.number).chosen = True

    def _contender(self, task_id: str, number: int) -> pb.Contender:
        return next(one for one in self._latest[task_id].contenders if one.number == number)

    def proven(self, data: events.StageProven, at_us: int) -> None:  # noqa: ARG002
        """The verifier said in the TEST stage what it found."""
        self._latest[data.task_id].finding.CopyFrom(revive(data.document, work.TaskFinding()))

    def verified(self, data: events.WaveVerified, at_us: int) -> None:  # noqa: ARG002
        """The verifier reported."""
        for finding in revive(data.document, work.VerificationReport()).tasks:
            if finding.task_id in self._latest:
                self._latest[finding.task_id].finding.CopyFrom(finding)

    def judged(self, data: events.TaskJudged, at_us: int) -> None:
        """Somebody said something about the work."""
        verdict = {None: "passed on", True: ACCEPTED, False: REJECTED}[data.accepted]
        attempt = self._latest[data.task_id]
        attempt.judgements.add(judge=data.judge, verdict=verdict, reason=data.reason, at=timestamp(at_us))
        attempt.status = "" if data.accepted is None else verdict

    def finished(self) -> list[pb.Attempt]:
        """All attempts; those without an end are going on, or were given up."""
        for attempt in self._all:
            is_live = attempt is self._latest[attempt.task_id] and not self._documents.run.ended
            attempt.status = attempt.status or (RUNNING if is_live else ABANDONED)
        return self._all

    def _name(self, task_id: str) -> str:
        task = self._documents.run.tasks.get(task_id)
        return task.outline.name if task else ""

    def _set_back(self, task_id: str, setback: pb.Setback, at_us: int) -> None:
        setback.at.CopyFrom(timestamp(at_us))
        self._latest[task_id].setbacks.append(setback)


_ON_EVENT: Mapping[str, Callable[[_History, Any, int], None]] = {
    "wave_claimed": _History.claimed,
    "assigned": _History.assigned,
    "contender_handed_in": _History.contender_handed_in,
    "contender_proven": _History.contender_proven,
    "contender_chosen": _History.contender_chosen,
    "assignment_retried": _History.retried,
    "stage_failed": _History.stage_failed,
    "work_handed_in": _History.handed_in,
    "stage_proven": _History.proven,
    "wave_verified": _History.verified,
    "task_judged": _History.judged,
}
