"""Finds renamed tests: their file was moved, or their function was renamed with the same body."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pointsman.proof.results import TestReport, TestResult

_SEPARATORS = ("::", " > ", "#", "/", ".")


@dataclass(frozen=True, slots=True)
class TestSources:
    """The texts of test files on the base and in the delivery, by path, and files that git sees as moved."""

    base: Mapping[str, str]
    delivered: Mapping[str, str]
    moved: Mapping[str, str]

    __test__ = False


def find_renames(base: TestReport, delivered: TestReport, sources: TestSources) -> dict[str, str]:
    """Ids of the base to ids of the delivery."""
    gone = [test for key, test in base.tests.items() if key not in delivered.tests]
    new = [test for key, test in delivered.tests.items() if key not in base.tests]
    renames = _by_moved_file(gone, new, sources.moved)
    taken = set(renames.values())
    for test in gone:
        if test.id not in renames:
            match = next((one for one in new if one.id not in taken and _same_body(test, one, sources)), None)
            if match is not None:
                renames[test.id] = match.id
                taken.add(match.id)
    return renames


def _by_moved_file(gone: Sequence[TestResult], new: Sequence[TestResult], moved: Mapping[str, str]) -> dict[str, str]:
    ids = {test.id for test in new}
    renames = {}
    for test in gone:
        now = moved.get(test.file, "")
        candidate = test.id.replace(test.file, now, 1) if now and test.file else ""
        if candidate in ids:
            renames[test.id] = candidate
    return renames


def short_name(test_id: str) -> str:
    """The last part of an id, without parameters."""
    name = test_id.partition("[")[0]
    for separator in _SEPARATORS:
        if separator in name:
            return name.rpartition(separator)[2]
    return name


def _same_body(old: TestResult, new: TestResult, sources: TestSources) -> bool:
    if not old.file or not new.file or sources.moved.get(old.file, old.file) != new.file:
        return False
    before, after = short_name(old.id), short_name(new.id)
    block = _block(sources.base.get(old.file, ""), before)
    return bool(block) and block.replace(before, after) == _block(sources.delivered.get(new.file, ""), after)


def _block(text: str, name: str) -> str:
    """The lines of a test: from the line that names it to the next one that is not indented further."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if name not in line or line.lstrip().startswith(("#", "//")):
            continue
        depth = _depth(line)
        body = []
        for following in lines[number + 1 :]:
            if following.strip() and _depth(following) <= depth and following.strip() not in {"}", "});", ")"}:
                break
            body.append(following.rstrip())
        return "\n".join([line.rstrip(), *body]).rstrip()
    return ""


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
