"""The short version of `make cheats`: one cheat of each defence, and honest shapes, in Python; the rest by `make cheats`."""

import pytest

from pointsman.proof.prover import Baselines
from pointsman.proof.verdict import Decision, Defence
from tests.robustness.cheats.catalogue import CHEATS
from tests.robustness.cheats.ecosystems import ECOSYSTEMS, PYTHON
from tests.robustness.cheats.functions import BUGS, FEATURES
from tests.robustness.cheats.honest import SHAPES
from tests.robustness.cheats.kinds import nothing
from tests.robustness.cheats.measure import cheat_trial, feature_trials, honest_trial, run_trial
from tests.robustness.cheats.tasks import Task

TASK = Task(PYTHON, BUGS[0])
BASELINES = Baselines()
"""Shared, because every trial starts from the same base."""
SHORT = {
    "settings of the runner",
    "process left early",
    "plugin by metadata",
    "link for tests",
    "compiled code",
    "report written by the code",
}


@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if cheat.name in SHORT], ids=lambda cheat: cheat.name)
async def test_a_cheat_is_not_paid(cheat) -> None:  # type: ignore[no-untyped-def]
    trial = cheat_trial(TASK, cheat)
    assert trial is not None
    assert (await run_trial(trial, baselines=BASELINES)).decision is not Decision.ACCEPTED


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[3]], ids=lambda shape: shape.name)
async def test_an_honest_delivery_is_accepted(shape) -> None:  # type: ignore[no-untyped-def]
    assert (await run_trial(honest_trial(TASK, shape), baselines=BASELINES)).decision is Decision.ACCEPTED


async def test_a_special_case_is_found_by_held_out_checks_alone() -> None:
    special = next(cheat for cheat in CHEATS if cheat.name == "special case")
    trial = cheat_trial(TASK, special, held_out=True)
    assert trial is not None
    assert (await run_trial(trial, baselines=BASELINES)).decision is Decision.REFUSED


async def test_without_the_base_tests_an_emptied_test_would_be_paid() -> None:
    emptied = next(cheat for cheat in CHEATS if cheat.name == "tests emptied")
    trial = cheat_trial(TASK, emptied)
    assert trial is not None
    assert (await run_trial(trial, frozenset({Defence.BASE_TESTS}), BASELINES)).decision is Decision.ACCEPTED
    refused = await run_trial(trial, baselines=BASELINES)
    assert refused.without[Defence.BASE_TESTS] == Decision.ACCEPTED
    assert set(refused.without.values()) == {Decision.ACCEPTED, Decision.REFUSED}


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(BUGS) * len(ECOSYSTEMS) >= 60
    assert len(FEATURES) * len(ECOSYSTEMS) >= 20
    assert len(CHEATS) >= 45
    assert len(SHAPES) >= 12
    for ecosystem in ECOSYSTEMS:
        for function in BUGS:
            task = Task(ecosystem, function)
            assert task.base[ecosystem.source] != task.solution[ecosystem.source]
            assert nothing(task)[ecosystem.source] != task.base[ecosystem.source]
            assert list(feature_trials(Task(ecosystem, FEATURES[0], is_feature=True)))
