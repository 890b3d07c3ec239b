"""Corrects misspelt verbs and approvals: an unknown word of five letters or more within one edit of a known one."""

from collections.abc import Iterable, Mapping

SHORTEST, LONGEST = 5, 20
"""Shorter words are too alike (test and text, fix and fit), longer ones are not written by hand."""


def build_spelling(words: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """The known words by each spelling with at most one letter left out."""
    found: dict[str, tuple[str, ...]] = {}
    for word in sorted(set(words)):
        if len(word) >= SHORTEST and word.isalpha():
            for short in (word, *_shortened(word)):
                found[short] = (*found.get(short, ()), word)
    return found


def corrected(spelling: Mapping[str, tuple[str, ...]], word: str) -> str:
    """The known word within one edit (a letter more, less, another, or two swapped); empty if there is none."""
    if not SHORTEST <= len(word) <= LONGEST:
        return ""
    for short in (word, *_shortened(word)):
        for known in spelling.get(short, ()):
            if _is_one_edit(known, word):
                return known
    return ""


def _shortened(word: str) -> list[str]:
    return [word[:at] + word[at + 1 :] for at in range(len(word))]


def _is_one_edit(one: str, other: str) -> bool:
    """Whether the words differ between their common beginning and end by one letter, or by two that are swapped."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(left), len(right)) <= 1 or (len(left) == 2 and left == right[::-1])
