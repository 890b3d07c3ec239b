"""Wrap the paragraphs and list items of Markdown files that have a line beyond 120 characters: `wrap.py <file>…`."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_LINE = 120
FENCE = re.compile(r"^ *(```|~~~)")
APART = re.compile(r"^\s*($|[|<#]|\[[^\]]+\]:)")
"""Lines that belong to no paragraph: empty ones, tables, comments, headings, link targets."""
ITEM = re.compile(r"^(\s*)([-*+] |\d+[.)] |> )?")
MARKER = re.compile(r"^([-*+>]|#+|\d+[.)]|\|.*)$")
"""Words that would begin a list, a heading, a quote or a table at the start of a line."""


def blocks(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """The lines in pieces: whether they may be wrapped, and the lines of one paragraph or item."""
    paragraph: list[str] = []
    in_fence = False
    for line in lines:
        fence = FENCE.match(line) is not None
        apart = in_fence or fence or APART.match(line) is not None
        in_fence = in_fence != fence
        if paragraph and (apart or _begins(line)):
            yield True, paragraph
            paragraph = []
        if apart:
            yield False, [line]
        else:
            paragraph.append(line)
    if paragraph:
        yield True, paragraph


def _begins(line: str) -> bool:
    match = ITEM.match(line)
    return match is not None and match[2] is not None


def wrapped(paragraph: list[str]) -> list[str]:
    """The paragraph in lines that are short enough; one that is already is left as it is."""
    if all(len(line) <= MAX_LINE for line in paragraph):
        return paragraph
    match = ITEM.match(paragraph[0])
    assert match is not None
    first, later = match[0], match[1] + " " * len(match[2] or "")
    lines, line = [], first
    for unit in _units(" ".join([paragraph[0][len(first) :], *(each.strip() for each in paragraph[1:])])):
        if line not in (first, later) and len(line) + 1 + len(unit) > MAX_LINE:
            lines.append(line)
            line = later
        line += unit if line in (first, later) else f" {unit}"
    return [*lines, line]


def _units(text: str) -> list[str]:
    """The words; one that may not begin a line is joined to the word before it."""
    units: list[str] = []
    for word in text.split():
        if units and MARKER.match(word):
            units[-1] += f" {word}"
        else:
            units.append(word)
    return units


def main() -> None:
    """Rewrite the files that are named."""
    for name in sys.argv[1:]:
        path = Path(name)
        pieces = blocks(path.read_text().splitlines())
        lines = [line for may_wrap, piece in pieces for line in (wrapped(piece) if may_wrap else piece)]
        path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
