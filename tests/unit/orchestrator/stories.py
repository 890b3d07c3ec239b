"""Runs that together take every row of the table, each told through the real `decide`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from pointsman.services.chassis.core.machine import Event
from pointsman.services.orchestrator.domain import commands, events, machine
from pointsman.services.orchestrator.domain.decision import Action, DecisionBuilder, Row, Table
from pointsman.services.orchestrator.domain.enums import (
    TERMINAL,
    Call,
    Capability,
    DebateVerdict,
    Purpose,
    Reply,
    Resume,
    State,
    Verdict,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.events import Transitioned
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.model import Candidate, Remark
from pointsman.services.orchestrator.domain.run import RunState
from pointsman.services.orchestrator.domain.table import CHANGEABLE, TABLE
from tests.unit.orchestrator.driver import ALL, MOCKS, Driver, plan

OLD = (Candidate("epic_9", "old", planned=True),)
Story = Callable[[], Driver]


def through() -> Driver:
    """Straight to the end."""
    return Driver().submit().settle().work_until()


def _unfinished(resume: Resume) -> Driver:
    driver = Driver(resume=resume)
    driver.candidates = OLD
    return driver.submit().settle()


def _resumed() -> Driver:
    return _unfinished(Resume.ASK).reply(Reply.RESUME_YES)


def _not_resumed() -> Driver:
    return _unfinished(Resume.ASK).reply(Reply.RESUME_NO)


def _resumed_unasked() -> Driver:
    return _unfinished(Resume.YES)


def _resumed_doubtful() -> Driver:
    """A resumed plan is not judged before it is scheduled."""
    driver = Driver(resume=Resume.YES)
    driver.candidates = OLD
    driver.submit()
    while driver.effects[0].kind != Call.LOAD_EPIC:
        driver._deliver(driver.effects.pop(0))
    call_id = driver.effects.pop(0).data.call_id
    driver.send(
        commands.CallAnswered("run_1", events.Resumed(call_id, "epic_9", "old", plan("T1", confidence=0.3), ()))
    )
    return driver.settle().work_until()


def _unclear() -> Driver:
    return Driver(confidence=0.5).submit().settle().reply(Reply.CLARIFIED, text="so")


def _rivals(reply: Reply) -> Story:
    return lambda: Driver(rival_run_id="run_0").submit().settle().reply(reply)


def _doubtful_plan() -> Driver:
    driver = Driver(ALL).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(confidence=0.3)))
    return driver


def _debated(verdict: DebateVerdict, *, blocking: bool = False) -> Story:
    def story() -> Driver:
        driver = Driver(ALL, debate=True).submit().settle().work_until(Purpose.DEBATE)
        driver.verdicts = [verdict]
        remark = Remark("k", "no", blocking=blocking)
        driver.hand_in(driver.open(Purpose.DEBATE)[0], commands.DebateResult((remark,)))
        return driver.work_until(Purpose.DEBATE, Purpose.PLAN)

    return story


def _two_slots() -> Driver:
    driver = Driver(ALL).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(slots=("s1", "s2"))))
    return driver.work_until(Purpose.DESIGN)


def _unsure_research() -> Driver:
    driver = Driver().submit().settle()
    while research := driver.open(Purpose.RESEARCH):
        driver.hand_in(research[0], commands.ResearchResult(0.1, "{}"))
    return driver


def _paused() -> Driver:
    driver = Driver()
    driver.workflow = WorkflowStatus.PAUSED
    return driver.submit().settle().work_until().reply(Reply.RESUME)


def _nothing_to_claim() -> Driver:
    driver = Driver().submit().settle()
    driver.pending = []
    return driver.work_until()


def _refused_pipeline() -> Driver:
    driver = Driver().submit().settle()
    research = driver.open(Purpose.RESEARCH)[0]
    epoch = driver.lease(research.assignment_id)
    result = commands.ResearchResult(0.9, "{}")
    driver.send(commands.CompleteAssignment("run_1", research.assignment_id, epoch, "agent", result))
    while driver.effects[0].kind != Call.START_PIPELINE:
        driver._deliver(driver.effects.pop(0))
    return driver.refuse_next().settle()


def _reviewed(verdict: Verdict, word: DebateVerdict = DebateVerdict.RETRY) -> Story:
    def story() -> Driver:
        driver = Driver().submit().settle().work_until(Purpose.REVIEW)
        driver.verdicts = [word]
        driver.hand_in(driver.open(Purpose.REVIEW)[0], commands.ReviewResult(verdict, feedback=("not so",)))
        return driver

    return story


def _two_waves() -> Driver:
    driver = Driver(MOCKS | {Capability.PLAN}).with_budget(fan_out=1).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", "T2")))
    return driver.work_until()


STORIES: Mapping[str, Story] = {
    "through": through,
    "resumed": _resumed,
    "not resumed": _not_resumed,
    "resumed unasked": _resumed_unasked,
    "resumed, doubtful": _resumed_doubtful,
    "unclear": _unclear,
    "switched": _rivals(Reply.SWITCH),
    "kept": _rivals(Reply.KEEP),
    "merged": _rivals(Reply.MERGE),
    "doubtful plan": _doubtful_plan,
    "debated": _debated(DebateVerdict.PROCEED),
    "remarked": _debated(DebateVerdict.MODIFY),
    "blocked by a remark": _debated(DebateVerdict.MODIFY, blocking=True),
    "escalated": _debated(DebateVerdict.ESCALATE),
    "two slots": _two_slots,
    "unsure research": _unsure_research,
    "paused": _paused,
    "nothing to claim": _nothing_to_claim,
    "refused pipeline": _refused_pipeline,
    "retried": _reviewed(Verdict.RETRY),
    "replanned": _reviewed(Verdict.REPLAN),
    "given up": _reviewed(Verdict.RETRY, DebateVerdict.ESCALATE),
    "two waves": _two_waves,
}


@dataclass(frozen=True, slots=True)
class Taken:
    """A row that `decide` took, and which of its actions ran."""

    row: Row
    actions: tuple[str, ...]


@dataclass(slots=True)
class Watch:
    """Notes each move of `decide` with the actions that were run for it."""

    moves: list[tuple[Event, list[str]]] = field(default_factory=list)

    def wrap(self, action: Action) -> Action:
        """The action, noted under the move that it was run for."""

        def noted(builder: DecisionBuilder) -> None:
            move = next(event for event in reversed(builder.events) if isinstance(event.data, Transitioned))
            if not self.moves or self.moves[-1][0] is not move:
                self.moves.append((move, []))
            self.moves[-1][1].append(action.__name__)
            action(builder)

        return noted

    def taken(self) -> list[Taken]:
        """The moves as rows of the table."""
        return [Taken(row_of(event), tuple(actions)) for event, actions in self.moves]


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch what `decide` does meanwhile; it does all of it."""
    watch = Watch()
    with pytest.MonkeyPatch.context() as patch:
        rows = (replace(row, actions=tuple(map(watch.wrap, row.actions))) for row in TABLE.rows)
        patch.setattr(machine, "TABLE", Table(rows))
        yield watch


def row_of(event: Event) -> Row:
    """The row that a move took."""
    key = (event.source, event.name, event.target)
    return next(row for row in TABLE.rows if (row.source, row.event, row.target) == key)


def passes(driver: Driver) -> Iterator[tuple[State, RunState]]:
    """The run as it was each time it had just come into a state, also into those that it leaves in the same command."""
    state: RunState | None = None
    for event in driver.journal:
        state = MACHINE.apply(state and RunState(state.run.copy(), {}, driver.present), event, driver.now)
        if state.run.status not in TERMINAL and (isinstance(event.data, Transitioned) or event.source == ""):
            yield state.run.status, RunState(state.run.copy(), {}, driver.present)


def stopped_in_each_state() -> list[tuple[State, RunState, datetime]]:
    """A run of a story in each state that is not terminal, as the first story that comes there has it."""
    found: dict[State, tuple[State, RunState, datetime]] = {}
    for story in STORIES.values():
        driver = story()
        for status, state in passes(driver):
            found.setdefault(status, (status, state, driver.now))
    return list(found.values())


def interrupt(state: RunState, now: datetime) -> list[RunState]:
    """The run after a person cancelled it, after a peer refused it for good, and after the wish changed."""
    waiting = RunState(state.run.copy().change(calls={"c0": Call.STORE_EPIC}), {}, state.present)
    ends = [
        MACHINE.decide(state, commands.Cancel("run_1", "enough"), now),
        MACHINE.decide(waiting, commands.CallRefused("run_1", "c0", "never"), now),
    ]
    if state.run.status in CHANGEABLE:
        ends.append(MACHINE.decide(state, commands.ChangeRequirement("run_1", "more"), now))
    return [decision.state for decision in ends]
