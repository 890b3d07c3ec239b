"""Invariants of runs: allowed transitions, leases and attempts, evidence for acceptances, something to wait for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from pointsman.audit.judges import judges
from pointsman.audit.stories import StoryProof
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.engine.audit import History, Violation
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain import events, evidence
from pointsman.services.orchestrator.domain.decision import WALL_CLOCK
from pointsman.services.orchestrator.domain.enums import AssignmentEnd, InternalEvent, PipelineStatus
from pointsman.services.orchestrator.domain.model import Assignment, Task
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS, Run
from pointsman.services.orchestrator.domain.table import TABLE

LIVE = ("OPEN", "LEASED")
MOVES = frozenset((str(row.source), str(row.event), str(row.target)) for row in TABLE.rows)
FACTS = frozenset(str(fact) for fact in InternalEvent)
PERSON = "person"


@dataclass(slots=True)
class _Work:
    """One assignment, as the journal has it."""

    assignment: Assignment
    seq: int
    attempts: int = 0
    end: events.AssignmentEnded | None = None
    ended_seq: int = 0


@dataclass(slots=True)
class _Ledger:
    """The assignments of a run so far."""

    known: dict[str, _Work] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)

    @property
    def live(self) -> list[_Work]:
        """Assignments that have not ended."""
        return [work for work in self.known.values() if work.end is None]


class RunProof:
    """Checks runs one by one, and collects them for the comparison with the other stores."""

    def __init__(self, store: Store) -> None:
        self._assignments = store.metadata.tables["assignments"]
        self._stories = StoryProof(store)
        self.runs: dict[str, tuple[Run, int, bool]] = {}
        """Each run, its version, and whether something of it is under way."""

    def __call__(self, connection: Connection, history: History) -> Iterator[Violation]:
        """Every violation of one run."""
        run: Run = history.state.run
        self.runs[run.run_id] = (run, history.row.version, bool(history.effects))
        yield from _table(history)
        ledger = _Ledger()
        yield from _leases(history, ledger)
        table = self._assignments
        rows = connection.execute(select(table).where(table.c.entity_id == run.run_id)).all()
        leases = {row.assignment_id: row for row in rows}
        yield from _lease_rows(history, run, ledger, leases)
        yield from _judges(history, ledger, leases)
        yield from judges(history)
        yield from _acceptances(history)
        yield from self._stories(connection, history)
        if not run.ended:
            yield from _waits(history, run)


def _table(history: History) -> Iterator[Violation]:
    for step in history.steps[1:]:
        stays = step.event in FACTS and step.source == step.target
        if not stays and (step.source, step.event, step.target) not in MOVES:
            yield history.violation("table", step.seq, f"{step.source} {step.event} {step.target} is not in the table")


def _leases(history: History, ledger: _Ledger) -> Iterator[Violation]:
    """Each assignment is offered once, has at most MAX_ATTEMPTS attempts, and ends once."""
    for step, event in zip(history.steps, history.events, strict=True):
        data = event.data
        if isinstance(data, events.Assigned):
            yield from _offered(history, ledger, step.seq, data.assignment)
        elif isinstance(data, events.BudgetHeld):
            ledger.held.add(data.assignment.assignment_id)
        elif isinstance(data, events.AssignmentRetried):
            yield from _tried(history, ledger, step.seq, data)
        ended = data.ended if isinstance(data, events.Researched) else data
        if isinstance(ended, events.AssignmentEnded):
            yield from _ended(history, ledger, step.seq, ended)


def _offered(history: History, ledger: _Ledger, seq: int, item: Assignment) -> Iterator[Violation]:
    if item.assignment_id in ledger.known:
        yield history.violation("lease", seq, f"{item.assignment_id} is offered a second time")
    for other in ledger.live:
        same = _place(other.assignment) == _place(item)
        if item.delegation_id and same:
            yield history.violation("lease", seq, f"{item.delegation_id} of {item.task_id} is offered to two agents")
    ledger.known[item.assignment_id] = _Work(item, seq)


def _place(item: Assignment) -> tuple[str, str, int]:
    """What only one agent may have in hand: a delegation of a task, or one contender's part of it."""
    return item.task_id, item.delegation_id, item.contender


def _tried(history: History, ledger: _Ledger, seq: int, data: events.AssignmentRetried) -> Iterator[Violation]:
    work = ledger.known.get(data.assignment_id)
    if work is None or work.end is not None:
        yield history.violation("lease", seq, f"{data.assignment_id} failed, but nobody had to work on it")
        return
    if not work.attempts < data.attempt < MAX_ATTEMPTS:
        yield history.violation("lease", seq, f"attempt {data.attempt} of {data.assignment_id} after {work.attempts}")
    work.attempts = data.attempt


def _ended(history: History, ledger: _Ledger, seq: int, data: events.AssignmentEnded) -> Iterator[Violation]:
    work = ledger.known.get(data.assignment_id)
    if work is None and data.assignment_id in ledger.held:
        return
    if work is None or work.end is not None:
        yield history.violation("lease", seq, f"{data.assignment_id} ended, but nobody had to work on it")
        return
    work.end, work.ended_seq = data, seq


def _lease_rows(history: History, run: Run, ledger: _Ledger, rows: dict[str, Any]) -> Iterator[Violation]:
    """The leases agree with the journal: attempts within the limit, and a completion only by the last holder."""
    for assignment_id, work in ledger.known.items():
        row = rows.get(assignment_id)
        if row is None:
            yield history.violation("lease", work.seq, f"{assignment_id} has no lease")
            continue
        if row.attempt > MAX_ATTEMPTS or row.epoch < row.attempt:
            yield history.violation(
                "lease", work.seq, f"{assignment_id} is at attempt {row.attempt}, epoch {row.epoch}"
            )
        if (row.status in LIVE) != (assignment_id in run.assignments):
            yield history.violation("lease", work.seq, f"{assignment_id} is {row.status}, not so for the run")
        if row.agent_id and row.agent_id == row.excluded_agent and not row.excluded_principals:
            yield history.violation("lease", work.seq, f"{assignment_id} is judged by its author {row.agent_id}")
        if work.end is not None and work.end.end is AssignmentEnd.DONE and work.end.agent_id != row.agent_id:
            yield history.violation(
                "lease", work.seq, f"{assignment_id} was taken from {work.end.agent_id}, not its holder"
            )
    for assignment_id in rows.keys() - ledger.known.keys():
        yield history.violation("lease", 0, f"{assignment_id} has a lease that the journal does not know")


def _judges(history: History, ledger: _Ledger, rows: dict[str, Any]) -> Iterator[Violation]:
    """No principal judges its own work, whatever agent ids it uses."""
    for assignment_id, work in ledger.known.items():
        row = rows.get(assignment_id)
        if row is None or not row.excluded_agent or row.apart_epoch != row.epoch:
            continue
        made = [
            other
            for other, done in ledger.known.items()
            if done.end is not None
            and done.end.end is AssignmentEnd.DONE
            and done.end.agent_id == row.excluded_agent
            and done.ended_seq < work.seq
        ]
        if any(_holder(rows.get(other)) == row.principal for other in made):
            yield history.violation(
                "lease", work.seq, f"{assignment_id} is judged by the principal of its author {row.excluded_agent}"
            )


def _holder(row: Any) -> str:
    """The principal that holds a lease; empty where it was not recorded."""
    return str(row.principal) if row is not None and row.principal_epoch == row.epoch else ""


def _acceptances(history: History) -> Iterator[Violation]:
    claimed_seq = verified_seq = 0
    for step, event, state in history.walk():
        if isinstance(event.data, events.WaveClaimed):
            claimed_seq = step.seq
        elif isinstance(event.data, events.WaveVerified):
            verified_seq = step.seq
        elif isinstance(event.data, events.TaskJudged) and event.data.accepted and event.data.judge != PERSON:
            judged: events.TaskJudged = event.data
            for problem in _unproven(state.run, state.run.tasks[judged.task_id], judged.judge):
                yield history.violation("evidence", step.seq, f"{judged.task_id} was accepted, but {problem}")
            if judged.judge == "verifier" and verified_seq <= claimed_seq:
                yield history.violation("evidence", step.seq, f"{judged.task_id} was accepted without a verification")


def _unproven(run: Run, task: Task, judge: str) -> Iterator[str]:
    """Why only a person could have accepted the task."""
    if task.work is None:
        yield "no work was handed in"
        return
    if bare := evidence.without_evidence(task.work):
        yield f"these claims have no evidence: {', '.join(bare)}"
    if uncovered := evidence.uncovered_criteria(task):
        yield f"nothing supports {', '.join(uncovered)}"
    if task.pipeline_status not in (PipelineStatus.COMPLETED, PipelineStatus.COMPLETED_WITH_FAILURES):
        yield f"its pipeline is {task.pipeline_status}"
    if judge == "reviewer" and run.needs_verifier:
        yield "nobody verified it"
    forced = task.pipeline_status is PipelineStatus.COMPLETED_WITH_FAILURES
    if forced and not any(risk.task_id == task.outline.task_id for risk in run.risks):
        yield "a stage that was forced on is no risk of the run"


def _waits(history: History, run: Run) -> Iterator[Violation]:
    """A live run waits for a person, an agent, a pending peer call, or a timer."""
    pending = {call for effect in history.effects if (call := _call_of(effect.payload))}
    for call_id in run.calls.keys() - pending:
        yield history.violation("waiting", history.row.version, f"the answer to {call_id} will never come")
    someone = run.question or run.assignments or run.held or run.calls
    if not someone and not history.timers - {WALL_CLOCK}:
        yield history.violation("waiting", history.row.version, "nobody and nothing will move it on")


def _call_of(payload: str) -> str:
    asked: dict[str, Any] = from_json(payload, dict[str, Any])
    return str(asked.get("call_id", ""))
