"""Trains the weights of the second layer from labelled messages: `python -m pointsman.services.router.rules.training FILE…`.

The same files give the same weights: examples are visited in an order that their texts determine, nothing is random.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointsman.services.router.domain.classification.classify import lower_in_place
from pointsman.services.router.domain.classification.second_layer import SCALE, features_of, norm_of
from pointsman.services.router.domain.enums import Mode
from pointsman.services.router.rules import WEIGHT_FILE

ROUNDS = 30
RARE = 2
"""A feature that fewer messages have gets no weight."""
PENALTY = 3.0
"""How much one misplaced message costs against large weights."""
_BIAS = ""


@dataclass(slots=True)
class _Example:
    features: list[str]
    value: float
    """What each of its features counts, so that long and short messages weigh the same."""
    label: int
    multiplier: float = 0.0


def train(items: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The weight of every feature, in units of 1/SCALE; the bias has the empty name."""
    examples = _examples(items)
    weights: dict[str, float] = {_BIAS: 0.0}
    for _ in range(ROUNDS):
        for example in examples:
            _step(weights, example)
    return {name: whole for name, weight in sorted(weights.items()) if (whole := round(weight * SCALE)) or not name}


def _examples(items: Iterable[Mapping[str, Any]]) -> list[_Example]:
    """The labelled messages as examples, in an order that depends on nothing but their texts."""
    labelled = {item["text"]: item for item in items if item.get("mode") is not None}
    order = sorted(labelled, key=lambda text: hashlib.sha256(text.encode()).digest())
    found = [features_of(lower_in_place(text, text.lower())) for text in order]
    counts = Counter(feature for features in found for feature in features)
    examples = []
    for text, features in zip(order, found, strict=True):
        known = sorted(feature for feature in features if counts[feature] >= RARE)
        label = 1 if labelled[text]["mode"] == Mode.ACTION else -1
        examples.append(_Example(known, SCALE / norm_of(features), label))
    return examples


def _step(weights: dict[str, float], example: _Example) -> None:
    """One step of dual coordinate descent for a linear machine with squared hinge loss."""
    value = example.value
    total = weights[_BIAS] + value * sum(weights.get(feature, 0.0) for feature in example.features)
    slack = 1 / (2 * PENALTY)
    gradient = example.label * total - 1 + slack * example.multiplier
    length = 1 + value * value * len(example.features)
    wanted = max(0.0, example.multiplier - gradient / (length + slack))
    change = (wanted - example.multiplier) * example.label
    if change:
        example.multiplier = wanted
        weights[_BIAS] += change
        for feature in example.features:
            weights[feature] = weights.get(feature, 0.0) + change * value


def read_items(files: Sequence[str]) -> list[dict[str, Any]]:
    """The labelled messages of the files."""
    return [json.loads(line) for file in files for line in Path(file).read_text(encoding="utf-8").splitlines()]


def main(files: Sequence[str]) -> None:
    """Writes the weights that the files give, and leaves the leans as they are."""
    known = json.loads(WEIGHT_FILE.read_text(encoding="utf-8"))
    weights = train(read_items(files))
    known["bias"] = weights.pop(_BIAS)
    known["weights"] = weights
    WEIGHT_FILE.write_text(json.dumps(known, ensure_ascii=False, indent=0, sort_keys=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
