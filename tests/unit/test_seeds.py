"""Every rule of the seeds names tests that exist, and docs/seeds.md is printed from that data."""

from pathlib import Path

import pytest

from tests.seeds import table


def test_every_sentence_of_the_seeds_names_tests_that_exist() -> None:
    assert list(table.problems(table.read_seeds())) == []


def test_the_page_of_the_seeds_is_what_the_data_prints() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page(table.read_seeds()), "run `make seeds`"


def seed_file(folder: Path, tests: str, extra: str = "") -> Path:
    path = folder / "001.toml"
    path.write_text(
        f'seed = "001"\ntitle = "Workflow"\n[[sentence]]\nsection = "States"\ntext = "A | b"\ntests = {tests}\n{extra}'
    )
    return path


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        ("[]", "names no test"),
        ('["test_this.py::test_missing"]', "names test_this.py::test_missing, which does not exist"),
        ('["nowhere.py::test_there"]', "names nowhere.py::test_there, which does not exist"),
        ('["test_this.py::helper"]', "names test_this.py::helper, which does not exist"),
    ],
)
def test_a_sentence_without_a_test_and_a_test_that_does_not_exist_are_named(
    tmp_path: Path, tests: str, problem: str
) -> None:
    (tmp_path / "test_this.py").write_text("async def test_there(): ...\ndef helper(): ...\n")
    seed_file(tmp_path, tests)
    assert list(table.problems(table.read_seeds(tmp_path), tmp_path)) == [f"001 States: 'A | b' {problem}"]


def test_a_sentence_that_is_listed_twice_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_this.py").write_text("async def test_there(): ...\n")
    tests = '["test_this.py::test_there"]'
    seed_file(tmp_path, tests, f'[[sentence]]\nsection = "States"\ntext = "A | b"\ntests = {tests}\n')
    assert list(table.problems(table.read_seeds(tmp_path), tmp_path)) == ["001 States: 'A | b' is listed twice"]


def test_an_unknown_field_and_a_foreign_number_are_refused(tmp_path: Path) -> None:
    path = seed_file(tmp_path, "[]", 'test = "x"\n')
    with pytest.raises(ValueError, match=r"001\.toml: unknown field test"):
        table.read_seed(path)
    with pytest.raises(ValueError, match="the file is named '002'"):
        table.read_seed(seed_file(tmp_path, "[]").rename(tmp_path / "002.toml"))


def test_a_rule_is_one_row_with_links_to_its_tests(tmp_path: Path) -> None:
    seed_file(tmp_path, '["tests/a.py::test_one_thing", "tests/b.py::test_two"]', 'ruling = "x\\ny"\n')
    printed = table.page(table.read_seeds(tmp_path))
    assert printed.endswith(
        "\n## 001: Workflow\n\n### States\n\n| rule | shown by | ruling |\n|---|---|---|\n"
        "| A \\| b | [one thing](../tests/a.py)<br>[two](../tests/b.py) | x y |\n"
    )
