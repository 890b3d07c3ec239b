"""Names from elsewhere as names of files and folders."""

import pytest

from pointsman.worker.handoff import safe_name

ROOT_COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("name", [ROOT_COMMIT, "survey-2", "run_1.a3-1", "données"])
def test_a_name_that_a_file_can_have_stays_as_it_is(name: str) -> None:
    assert safe_name(name) == name


def test_no_two_names_become_the_same_file() -> None:
    names = ["a/b", "a_b", "a:b", ".a", "a", "..", ".", "s" * 200 + "1", "s" * 200 + "2"]
    files = [safe_name(name) for name in names]
    assert len(set(files)) == len(names)
    assert all(len(file) <= 120 and "/" not in file and not file.startswith(".") for file in files)
