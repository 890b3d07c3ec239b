"""Tasks of the corpus: a bug with a red test, or a feature on a green base, in one ecosystem."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.robustness.cheats.ecosystems import ECOSYSTEMS, KEEP, Ecosystem
from tests.robustness.cheats.functions import BUGS, FEATURES, Function, Guards

Change = Mapping[str, str | None]
"""Files of a delivery: new content, None for a removed file, `-> x` for a link."""


@dataclass(frozen=True)
class Task:
    """What an agent is asked to do, and what it never sees."""

    ecosystem: Ecosystem
    function: Function
    is_feature: bool = False

    @property
    def base(self) -> dict[str, str]:
        """The files that the work starts from."""
        function, place = self.function, self.ecosystem
        parts = [place.function(KEEP, KEEP.right)]
        cases = [(KEEP, KEEP.shown)]
        if not self.is_feature:
            parts.append(place.function(function, function.wrong))
            cases.append((function, function.shown))
        return {**place.manifest, place.source: place.sources(*parts), place.test: place.tests(cases)}

    @property
    def red(self) -> str:
        """The id of the test that fails because of the bug."""
        return self.ecosystem.test_id(self.ecosystem.test, self.function, 0)

    @property
    def held_out(self) -> dict[str, str]:
        """Checks that the agent never sees."""
        cases = [(self.function, self.function.held_out)]
        return {
            self.ecosystem.hidden: self.ecosystem.tests(
                cases, "hidden_" if self.ecosystem.name != "python" else "test_"
            )
        }

    def source(self, body: Guards, extra: str = "", head: str = "", tail: str = "") -> dict[str, str | None]:
        """The source with this body of the function."""
        place = self.ecosystem
        text = place.sources(head, place.function(KEEP, KEEP.right), place.function(self.function, body, extra), tail)
        return {place.source: text}

    @property
    def solution(self) -> dict[str, str | None]:
        """The true solution."""
        return self.source(self.function.right)

    def tests(self, prefix: str = "") -> str:
        """The tests that the agent sees, with another prefix if one is given."""
        return self.ecosystem.tests([(KEEP, KEEP.shown), (self.function, self.function.shown)], prefix)

    def own_tests(self) -> dict[str, str | None]:
        """New tests of the author's own, in a file of their own."""
        name = {
            "python": "test_own.py",
            "node": "own.test.mjs",
            "go": "own_test.go",
            "rust": "tests/own_test.rs",
            "java": "src/test/java/calc/OwnCalcTest.java",
        }
        prefix = {"python": "test_own_", "node": "own ", "go": "own", "rust": "own_", "java": "own"}[
            self.ecosystem.name
        ]
        cases = [(self.function, self.function.shown)]
        return {name[self.ecosystem.name]: self.ecosystem.tests(cases, prefix)}


def bugs() -> Iterator[Task]:
    """Every bug in every ecosystem that is installed."""
    for ecosystem in ECOSYSTEMS:
        if ecosystem.is_here:
            yield from (Task(ecosystem, function) for function in BUGS)


def features() -> Iterator[Task]:
    """Every feature in every ecosystem that is installed."""
    for ecosystem in ECOSYSTEMS:
        if ecosystem.is_here:
            yield from (Task(ecosystem, function, is_feature=True) for function in FEATURES)
