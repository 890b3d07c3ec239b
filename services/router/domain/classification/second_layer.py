"""The second layer: weighs the words of a message that no firm rule decides, with integer weights from a file."""

import bisect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.services.router.domain.language.han_variants import simplified
from pointsman.services.router.domain.language.languages import without_accents

_EAST_ASIAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_HANGUL = "\uac00-\ud7af"
_TOKEN = re.compile(
    rf"[{_EAST_ASIAN}]+|[{_HANGUL}]+|[^\W\d_{_EAST_ASIAN}{_HANGUL}]+(?:'[^\W\d_]+)?|\d+|[?？]|[.!;\n。！；]"
)
_WRITTEN_TOGETHER = re.compile(f"[{_EAST_ASIAN}]")
_SPACED_SYLLABLES = re.compile(f"[{_HANGUL}]")
_ASKS = frozenset("?？")
_MARKS = frozenset(".!;\n。！；") | _ASKS | {"\x02"}
_SPACED = str.maketrans(
    {mark: f" {mark} " for mark in ".!;?"} | {"\n": " \x02 "} | dict.fromkeys(':,()[]{}<>|&/=+*%#@$^~`"_-\\\x01', " ")
)
_LONGEST, _HEAD, _TAIL = 120, 80, 40
"""Of a longer text only the first and the last tokens are weighed."""
_LENGTHS = (2, 5, 10, 20, 40)
_LENGTH_NAMES = tuple(f"#{length}" for length in range(len(_LENGTHS) + 1))
_START = "^"
_GRAMS = 3
_STEM = 5
SCALE = 1000
"""What a weight of one is in the file."""


@dataclass(frozen=True, slots=True)
class SecondLayer:
    """Weights of words, and how far each rule leans to ACTION before the words are weighed."""

    version: str
    bias: int
    leans: Mapping[str, int]
    weights: Mapping[str, int]

    def score(self, rule: str, text: str) -> int:
        """How much speaks for ACTION in a message that this rule would decide, in units of 1/SCALE."""
        features = features_of(text)
        weights = self.weights
        total = sum([weights[feature] for feature in features if feature in weights])
        return self.bias + self.leans[rule] + total * SCALE // norm_of(features)

    def heaviest(self, text: str, most: int) -> list[tuple[str, int]]:
        """The features that weigh most in a text, each with what it adds to the score."""
        features = features_of(text)
        length = norm_of(features)
        found = [(name, self.weights[name] * SCALE // length) for name in features if name in self.weights]
        return sorted(found, key=lambda weighed: (-abs(weighed[1]), weighed[0]))[:most]


def norm_of(features: set[str]) -> int:
    """The Euclidean length of a message's features, times SCALE, as an integer."""
    return math.isqrt(len(features) * SCALE * SCALE)


def features_of(text: str) -> set[str]:
    """The features of a lower-case text: words, pairs of words, beginnings of words, parts of words in East Asian scripts."""
    plain = text.isascii()
    tokens = text.translate(_SPACED).split() if plain else _TOKEN.findall(simplified(text))
    if len(tokens) > _LONGEST:
        tokens = tokens[:_HEAD] + tokens[-_TAIL:]
    found = {_LENGTH_NAMES[bisect.bisect_left(_LENGTHS, len(tokens))]}
    add = found.add
    before = _START
    for token in tokens:
        if token in _MARKS:
            if token in _ASKS:
                add("?")
                add(f"?{before}")
            before = _START
        else:
            word = token if plain else _folded(found, before, token)
            if word:
                add(word)
                add(f"{before} {word}")
                if len(word) >= _STEM:
                    add(word[:_STEM] + "-" if len(word) > _STEM else word[:4] + "-")
            before = word or token
    add(f"{before}$")
    return found


def _folded(found: set[str], before: str, token: str) -> str:
    """The token without accents; of East Asian scripts the parts are added, and a word only where blanks separate words."""
    if token.isascii():
        return token
    if _WRITTEN_TOGETHER.match(token):
        _add_parts(found, f"{_START}{token}$" if before == _START else f"{token}$")
        return ""
    if _SPACED_SYLLABLES.match(token):
        found |= {token[:2], f"{token[-1]}$", f"{token[-2:]}$", f"{token[-3:]}$"}
        if before == _START:
            found.add(f"{_START}{token[:2]}")
        return token
    return without_accents(token)


def _add_parts(found: set[str], token: str) -> None:
    """Adds every part of one, two or three letters."""
    for length in range(1, _GRAMS + 1):
        found.update([token[at : at + length] for at in range(len(token) - length + 1)])
