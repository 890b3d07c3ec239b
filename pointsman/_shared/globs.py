"""Globs of file paths: whether one covers a path, and whether two could cover the same path; in doubt they could.

`*`, `?` and `[…]` stay within a part of a path, `**` stands for any number of parts. A glob whose last part has no dot,
or that ends with `/`, stands for a folder with everything in it too. Letters of either case are the same.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

ANY = "**"
MOST_PARTS, MOST_LETTERS = 64, 256
"""What is larger is not looked into: it could cover everything."""
_SET = re.compile(r"\[[^\]/]*\]")
_CHOICE = re.compile(r"\{[^{}/]*\}")
_UNCLEAR = re.compile(r"[^/]*[{\[].*")
"""From the first part on that has a choice of whole paths, or a bracket that is not closed."""


def covers(glob: str, path: str) -> bool:
    """Whether a glob covers a path, as far as this can be decided."""
    return overlap(glob, _literal(path))


@lru_cache(maxsize=65_536)
def overlap(first: str, second: str) -> bool:
    """Whether some path could be covered by both globs."""
    one, other = _parts(first), _parts(second)
    if max(len(one), len(other)) > MOST_PARTS or max(len(first), len(second)) > MOST_LETTERS:
        return True
    return _meet(one, other) or _holds(one, other) or _holds(other, one)


def _literal(path: str) -> str:
    """A path as a glob that covers it."""
    return re.sub(r"[*?\[\]{}]", "?", path)


def _parts(glob: str) -> tuple[str, ...]:
    """The parts of a glob, with sets and choices as wider wildcards."""
    plain = unicodedata.normalize("NFC", glob).casefold()
    plain = _UNCLEAR.sub(ANY, _CHOICE.sub("*", _SET.sub("?", plain)))
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    return (*parts, ANY) if plain.endswith("/") or not parts else tuple(parts)


def _holds(folder: tuple[str, ...], inside: tuple[str, ...]) -> bool:
    """Whether the first could be a folder that holds something of the second."""
    if "." not in folder[-1][1:]:
        return _meet((*folder, ANY), inside)
    beginning = inside[: len(folder)]
    if len(inside) <= len(folder) or ANY in folder or ANY in beginning:
        return False
    return _meet(folder, beginning)


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether some path goes through both lists of parts to their ends."""
    return _walk(one, other, ANY, _same_part)


@lru_cache(maxsize=65_536)
def _same_part(one: str, other: str) -> bool:
    """Whether some name fits both parts."""
    if "*" not in one + other and "?" not in one + other:
        return one == other
    return _walk(tuple(one), tuple(other), "*", _same_letter)


def _same_letter(one: str, other: str) -> bool:
    return one == other or "?" in (one, other)


def _walk(one: Sequence[str], other: Sequence[str], anything: str, same: Callable[[str, str], bool]) -> bool:
    """Whether both sequences can be read to their ends together; `anything` reads as many items as it likes."""
    reached, ahead = {(0, 0)}, [(0, 0)]
    while ahead:
        left, right = ahead.pop()
        mine, theirs = one[left : left + 1], other[right : right + 1]
        steps = set()
        if mine and mine[0] == anything:
            steps |= {(left + 1, right), *({(left, right + 1)} if theirs else ())}
        if theirs and theirs[0] == anything:
            steps |= {(left, right + 1), *({(left + 1, right)} if mine else ())}
        if mine and theirs and same(mine[0], theirs[0]):
            steps.add((left + 1, right + 1))
        ahead += steps - reached
        reached |= steps
    return (len(one), len(other)) in reached
