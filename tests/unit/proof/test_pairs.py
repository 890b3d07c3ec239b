"""Runs of one command at the same time: quicker, and never worth less than one after the other."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from pointsman.project import ProjectFile, ProofSection, WorkspaceSection
from pointsman.project.command_line import Command
from pointsman.proof.execution import CommandRunner, Furnishing, ProofRun, Purpose
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover
from pointsman.proof.results import Outcome
from pointsman.proof.verdict import Decision
from pointsman.sandbox import Level, Limits
from pointsman.worker import proof_environment
from pointsman.worker.proof_environment import pairs_after_seconds
from tests.helpers.limits import scaled
from tests.unit.proof.deliveries import CALC, FIXED, TEST_CALC, UNITTEST, delivered

OWN = {"test_own.py": TEST_CALC.replace("TestCalc", "TestOwn")}


class Counting(CommandRunner):
    """Counts the runs, and how many went on at the same time; spoils those with the base's tests that are not alone."""

    spoils = False
    most = 0

    async def run(self, purpose: Purpose, *given: Any, **named: Any) -> ProofRun:
        self.purposes: list[Purpose] = [*getattr(self, "purposes", []), purpose]
        self.live: dict[Purpose, bool] = getattr(self, "live", {})
        """The runs that go on, and whether each of them had company."""
        self.live[purpose] = False
        if len(self.live) > 1:
            self.live = dict.fromkeys(self.live, True)
        self.most = max(self.most, len(self.live))
        run = await super().run(purpose, *given, **named)
        if self.live.pop(purpose) and self.spoils and purpose is Purpose.RESTORED:
            tests = {key: replace(test, outcome=Outcome.FAILED) for key, test in run.report.tests.items()}
            return replace(run, report=replace(run.report, tests=tests))
        return run


async def proven(folder: Path, change: dict[str, str], after: float | None, *, spoils: bool = False) -> Any:
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    repository, first, second = await delivered(folder / "user", CALC, dict(change))
    furnishing = Furnishing(limits=Limits(seconds=scaled(60)))
    runner = Counting(repository, folder / "proof", furnishing, after)
    runner.spoils = spoils
    proof: Proof = await Prover(repository, runner, Baselines()).prove(ProofRequest(first, second, (UNITTEST,)))
    return proof, runner


async def test_both_proofs_of_a_long_command_run_at_the_same_time_and_say_the_same(tmp_path: Path) -> None:
    alone, one_by_one = await proven(tmp_path / "a", {**FIXED, **OWN}, None)
    beside, in_pairs = await proven(tmp_path / "b", {**FIXED, **OWN}, 0.0)
    assert (one_by_one.most, in_pairs.most) == (1, 2)
    assert sorted(one_by_one.purposes) == sorted(in_pairs.purposes)
    assert alone.verdict == beside.verdict
    assert alone.verdict.decision is Decision.ACCEPTED


async def test_a_short_command_runs_alone(tmp_path: Path) -> None:
    _, runner = await proven(tmp_path, {**FIXED, **OWN}, 3600.0)
    assert runner.most == 1


async def test_what_does_not_hold_beside_another_run_is_run_again_alone_and_named(tmp_path: Path) -> None:
    proof, runner = await proven(tmp_path, {**FIXED, **OWN}, 0.0, spoils=True)
    assert runner.purposes.count(Purpose.RESTORED) == 2
    assert proof.verdict.decision is Decision.ACCEPTED
    assert any("tests failed once and passed when run again" in risk for risk in proof.verdict.risks)


async def test_the_base_is_not_run_again_where_only_tests_changed(tmp_path: Path) -> None:
    proof, runner = await proven(tmp_path, OWN, None)
    assert set(runner.purposes) == {Purpose.BASE, Purpose.DELIVERED}
    assert proof.verdict.decision is Decision.REFUSED, "its new test fails as the base's does"


def test_runs_that_could_meet_or_have_no_room_stay_apart(monkeypatch: Any) -> None:
    alone = ProjectFile()
    monkeypatch.setattr(proof_environment, "available_level", lambda: Level.NAMESPACES)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert pairs_after_seconds(alone) == 5.0
    installs = replace(alone, workspace=WorkspaceSection(setup=(Command("true", ("true",)),)))
    assert pairs_after_seconds(installs) == 30.0
    assert pairs_after_seconds(replace(alone, proof=ProofSection(network=True))) is None
    monkeypatch.setattr(proof_environment, "available_level", lambda: Level.LANDLOCK)
    assert pairs_after_seconds(alone) is None
    monkeypatch.setattr(proof_environment, "available_level", lambda: Level.NAMESPACES)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert pairs_after_seconds(alone) is None
