"""Readers of report formats: text in, results per test out; each says why a report is not whole."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from pointsman.proof.adapters.readers import cargo, go, jest, junit, lines, mocha, nextest, tap
from pointsman.proof.adapters.readers.report import ReadReport


class Format(StrEnum):
    """The formats of reports."""

    LINES = "lines"
    JUNIT = "junit"
    GO = "go"
    JEST = "jest"
    MOCHA = "mocha"
    CARGO = "cargo"
    NEXTEST = "nextest"
    TAP = "tap"


READERS: Mapping[Format, Callable[[str], ReadReport]] = {
    Format.LINES: lines.read,
    Format.JUNIT: junit.read,
    Format.GO: go.read,
    Format.JEST: jest.read,
    Format.MOCHA: mocha.read,
    Format.CARGO: cargo.read,
    Format.NEXTEST: nextest.read,
    Format.TAP: tap.read,
}
