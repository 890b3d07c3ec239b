"""Repeated proofs: another order, another folder, another time; what holds once only is not proven."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pointsman.proof.adapters.instrument import Variation, instrument, prepare_place
from pointsman.proof.execution import CommandRunner, Furnishing, Purpose, fake_time_library
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover, variations
from pointsman.proof.verdict import Decision, Grade
from pointsman.sandbox import Limits
from tests.helpers.limits import scaled
from tests.unit.proof.deliveries import CALC, FIXED, PYTEST, UNITTEST, delivered
from tests.unit.proof.runners import write

ONCE = """doubled = False


def add(a, b):
    return a - b if doubled else a + b


def double(a):
    global doubled
    doubled = True
    return a * 2
"""
ORDERED = (
    CALC["test_calc.py"]
    + """

class TestOrder(unittest.TestCase):
    seen = []

    def test_a(self):
        self.seen.append(1)

    def test_b(self):
        self.assertTrue(self.seen)
"""
)


async def repeated(folder: Path, base: dict[str, str], change: dict[str, str], repeat: int) -> Proof:
    """The proof of a change whose command is repeated."""
    repository, first, second = await delivered(folder / "user", base, change)
    runner = CommandRunner(repository, folder / "proof", Furnishing(limits=Limits(seconds=scaled(60))))
    request = ProofRequest(first, second, (UNITTEST,), repeat=repeat)
    return await Prover(repository, runner, Baselines()).prove(request)


async def test_a_fix_that_holds_in_one_order_only_is_refused_when_repeated(tmp_path: Path) -> None:
    for name in ("one", "five"):
        (tmp_path / name).mkdir()
    once = await repeated(tmp_path / "one", dict(CALC), {"calc.py": ONCE}, 1)
    assert once.verdict.grade is Grade.PROVEN
    again = await repeated(tmp_path / "five", dict(CALC), {"calc.py": ONCE}, 5)
    assert again.verdict.decision is Decision.REFUSED
    assert again.verdict.reasons == (
        "tests pass once and fail when repeated (in another order, folder and time): test_calc.TestCalc.test_add",
    )


async def test_a_test_that_needs_its_order_on_the_base_too_is_a_risk_and_no_refusal(tmp_path: Path) -> None:
    proof = await repeated(tmp_path, {**CALC, "test_calc.py": ORDERED}, dict(FIXED), 5)
    assert proof.verdict.grade is Grade.PROVEN
    assert proof.commands[0].flaky == ("test_calc.TestOrder.test_b",)


async def test_a_repeated_run_is_on_another_day_where_the_machine_can_pretend_one(tmp_path: Path) -> None:
    if fake_time_library() is None:
        pytest.skip("libfaketime is not installed")
    script = "import time, sys; print('later' if time.time() > float(sys.argv[1]) else 'now')"
    repository, first, _ = await delivered(tmp_path / "user", {"a": "1"}, {"a": "2"})
    runner = CommandRunner(repository, tmp_path / "proof", Furnishing(limits=Limits(seconds=scaled(60))))
    month = (tmp_path / "user" / "a").stat().st_mtime + 20 * 86400
    command = (sys.executable, "-c", script, str(month))
    said = [
        (await runner.run(Purpose.BASE, await repository.snapshot(first), command, variation=one)).result.output.strip()
        for one in (None, Variation(1, 30))
    ]
    assert said == [b"now", b"later"]


def test_variations_follow_from_the_tree_and_are_none_for_a_single_run() -> None:
    assert variations("a", 1) == ()
    assert variations("a", 3) == variations("a", 3) != variations("b", 3)
    assert len({one.seed for one in variations("a", 9)}) == 8


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("go", "test", "./..."), ("go", "test", "-json", "-count=1", "-shuffle=7", "./...")),
        (("vitest",), ("--sequence.shuffle", "--sequence.seed=7")),
    ],
)
def test_runners_are_told_to_shuffle(tmp_path: Path, command: tuple[str, ...], words: tuple[str, ...]) -> None:
    made = instrument(command, prepare_place(tmp_path / "place", "n"), {}, variation=Variation(7, 1))
    usual = instrument(command, prepare_place(tmp_path / "other", "n"), {})
    assert set(words) <= set(made.command)
    assert not {word for word in usual.command if "shuffle" in word}


def test_pytest_runs_in_another_order_and_keeps_classes_together(tmp_path: Path) -> None:
    text = "".join(f"def test_{name}(): pass\n" for name in "abcdef")
    text += "class TestOne:\n" + "".join(f"    def test_{name}(self): pass\n" for name in "uvw")
    tree = write(tmp_path / "tree", {"test_it.py": text})
    orders = [_order(tree, tmp_path / str(seed), seed) for seed in (0, 1, 2)]
    assert len({tuple(order) for order in orders}) == 3
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}
    for order in orders:
        places = [number for number, test in enumerate(order) if "TestOne" in test]
        assert places[-1] - places[0] == 2


def _order(tree: Path, folder: Path, seed: int) -> list[str]:
    """The ids of the tests in the order in which pytest ran them."""
    place = prepare_place(folder, "n")
    made = instrument(PYTEST, place, {}, variation=Variation(seed, 1) if seed else None)
    environment = {"PATH": os.environ["PATH"], **made.environment}
    subprocess.run(made.command, cwd=tree, env=environment, check=True, capture_output=True, timeout=scaled(50))
    lines = next(place.reports.iterdir()).read_text().splitlines()
    return [line.split('"')[3] for line in lines if '"id"' in line]
