"""What best of N costs and brings: the real machine with scripted coders whose work holds with a given chance.

`python -m tests.bench.best_of` prints a table: coders started, rounds that a person waits for (coders side by side are
one round), and how many of 200 tasks end as a question to a person.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.commands import StageResult, TaskFinding
from pointsman.services.orchestrator.domain.enums import Capability, Grade, Purpose
from pointsman.services.orchestrator.domain.model import Assignment
from tests.unit.orchestrator.driver import ALL, Driver, plan, work
from tests.unit.orchestrator.test_acceptance import REPOSITORY
from tests.unit.orchestrator.test_proven_stage import ReturningDriver

TASKS = 200
CHANCES = (0.3, 0.5, 0.7, 0.9)
WIDTHS = (1, 2, 3, 5)


class Coders:
    """Coders each of whose works holds with the same chance, independently of the others; each failure is another one."""

    def __init__(self, chance: float, seed: int) -> None:
        self._chance = chance
        self._seed = seed
        self._good: dict[str, bool] = {}
        self.starts = 0
        self.rounds = 0

    def result(self, driver: Driver, item: Assignment) -> object:
        """What the agent of an assignment hands in."""
        if item.capability is Capability.CODE:
            self.starts += 1
            self.rounds += item.contender < 2
            commit = f"{self.starts:040x}"
            drawn = hashlib.sha256(f"{self._seed}/{commit}".encode()).digest()
            self._good[commit] = int.from_bytes(drawn[:4]) / 2**32 < self._chance
            return StageResult("PASS", work=replace(work(item.task_id), result_commit=commit))
        if item.capability is Capability.VERIFY and item.purpose is Purpose.STAGE:
            holds = self._good[item.patch]
            failing = () if holds else (f"test_{item.patch}",)
            grade = Grade.PROVEN if holds else None
            found = TaskFinding(item.task_id, holds, ("K1",), (f"{item.task_id}-C1",), "red", grade, failing=failing)
            return StageResult("PASS" if holds else "FAIL", proof=found, document="{}")
        return driver.good_result(item)


def play(chance: float, width: int, seed: int) -> tuple[int, int, bool]:
    """One task: coders started, rounds, and whether it was accepted without a person."""
    driver = ReturningDriver(ALL, **{**REPOSITORY, "best_of": width})
    driver.submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", command=True)))
    coders = Coders(chance, seed)
    while driver.open() and driver.run.question is None and driver.rounds < 6:
        item = driver.open()[0]
        who = f"agent-{item.assignment_id}"
        driver.hand_in(item, coders.result(driver, item), who, principal=who)
    return coders.starts, coders.rounds, driver.run.ended


def rows() -> Iterator[str]:
    """The table."""
    yield "| a coder's work holds | best of | coders started | rounds | accepted without a person |"
    yield "|---|---|---|---|---|"
    for chance in CHANCES:
        for width in WIDTHS:
            played = [play(chance, width, seed) for seed in range(TASKS)]
            starts, rounds, ended = (sum(column) / TASKS for column in zip(*played, strict=True))
            yield f"| {chance:.0%} | {width} | {starts:.2f} | {rounds:.2f} | {ended:.1%} |"


if __name__ == "__main__":
    for line in rows():
        print(line, flush=True)
