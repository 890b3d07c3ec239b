"""What the project file adds to an order, and what options take the place of."""

from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import Budget
from pointsman.cli.session.repository import with_repository
from pointsman.client import Order
from tests.unit.worker.repositories import repository

FILE = '[proof]\nverify = ["make check", "make lint"]\n[budget]\ncost_usd = 0.5\nminutes = 3\n'


async def ordered(folder: Path, order: Order, files: dict[str, str]) -> tuple[Order, list[str]]:
    await repository(folder, files)
    said: list[str] = []
    return await with_repository(order, folder, said.append, include_changes=False), said


async def test_the_file_names_proof_and_budget(tmp_path: Path) -> None:
    order, said = await ordered(tmp_path / "user", Order("fix it"), {"pointsman.toml": FILE, "go.mod": ""})
    assert order.verify_commands == [("make", "check"), ("make", "lint")]
    assert order.budget is not None
    assert (order.budget.cost_micros, order.budget.wall_clock.seconds) == (500_000, 180)
    assert said == ["proof: `make check`, `make lint` (pointsman.toml)"]


async def test_an_option_wins_over_the_file(tmp_path: Path) -> None:
    given = Order("fix it", verify_commands=[("true",)], budget=Budget(tokens=5))
    order, _ = await ordered(tmp_path / "user", given, {"pointsman.toml": FILE})
    assert (order.verify_commands, order.budget) == ([("true",)], Budget(tokens=5))


async def test_without_a_file_the_tests_that_are_found_prove(tmp_path: Path) -> None:
    order, said = await ordered(tmp_path / "user", Order("fix it"), {"go.mod": ""})
    assert (order.verify_commands, order.budget) == ([("go", "test", "./...")], None)
    assert said == ["proof: `go test ./...` (found in the repository; --verify names another)"]


async def test_a_file_with_problems_ends_the_command_with_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        await ordered(tmp_path / "user", Order("fix it"), {"pointsman.toml": "[proof]\nverfy = []\nrepeat = 0\n"})
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert "pointsman.toml:2: proof.verfy" in printed
    assert "pointsman.toml:3: proof.repeat" in printed
