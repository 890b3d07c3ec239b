"""Evaluates the rules on labelled messages: accuracy, false positives and negatives, agreement on the other fields."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pointsman.services.router.domain.classification.classify import weigh
from pointsman.services.router.domain.classification.rule_book import THRESHOLDS, RuleBook
from pointsman.services.router.domain.enums import Mode
from pointsman.services.router.domain.model import Classification

FIELDS = ("confidence", "fast_path", "debate", "stakes", "debate_bypass")
"""Fields that are scored beside the mode where an item labels them."""

CURVE = (-1500, -1000, -750, -500, -250, 0, 250, 500, 750, 1000, 1500)
"""The thresholds of the curve."""
NEAR = 500
"""A score that is nearer to zero than this is a close decision."""
_DOUBTS = {threshold: str(doubt) for doubt, threshold in THRESHOLDS.items()}


@dataclass(slots=True)
class Score:
    """Confusion counts of one slice of the messages."""

    total: int = 0
    correct: int = 0
    answers: int = 0
    false_positives: int = 0
    actions: int = 0
    false_negatives: int = 0

    def count(self, expected: str, got: str) -> None:
        """Counts one message."""
        right = expected == got
        self.total += 1
        self.correct += right
        if expected == Mode.ANSWER:
            self.answers += 1
            self.false_positives += not right
        else:
            self.actions += 1
            self.false_negatives += not right

    def rates(self) -> dict[str, Any]:
        """The counts and their rates."""
        return {
            "total": self.total,
            "correct": self.correct,
            "accuracy": _rate(self.correct, self.total),
            "false_positives": self.false_positives,
            "false_positive_rate": _rate(self.false_positives, self.answers),
            "false_negatives": self.false_negatives,
            "false_negative_rate": _rate(self.false_negatives, self.actions),
        }


@dataclass(slots=True)
class Evaluation:
    """Scores of all slices, agreement on the other fields, and every item with a wrong field."""

    overall: Score = field(default_factory=Score)
    by_language: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    agreed: dict[str, list[int]] = field(default_factory=lambda: {name: [0, 0] for name in FIELDS})
    wrong: list[dict[str, Any]] = field(default_factory=list)
    reliability: dict[str, list[int]] = field(default_factory=dict)
    """Of each way in which a mode was decided: how many, and how many of them right."""
    weighed: list[tuple[str, str, int | None]] = field(default_factory=list)
    """The expected mode, the mode and the score of each message; no score where a firm rule decided."""

    def as_dict(self) -> dict[str, Any]:
        """The evaluation as plain values for JSON."""
        return {
            **self.overall.rates(),
            "by_lang": {name: score.rates() for name, score in sorted(self.by_language.items())},
            "agreement": {
                name: {"scored": scored, "agreed": agreed, "rate": _rate(agreed, scored)}
                for name, (agreed, scored) in self.agreed.items()
            },
            "reliability": {
                name: {"decided": decided, "right": right, "rate": _rate(right, decided)}
                for name, (decided, right) in sorted(self.reliability.items())
            },
            "wrong": self.wrong,
        }

    def curve(self) -> list[dict[str, Any]]:
        """The rates at each threshold of the second layer: what fewer errors of one kind cost of the other."""
        rows = []
        for threshold in CURVE:
            score = Score()
            for expected, mode, weighed in self.weighed:
                wanted = Mode.ACTION if weighed is not None and weighed > threshold else Mode.ANSWER
                score.count(expected, mode if weighed is None else wanted)
            rows.append({"threshold": threshold, "doubt": _DOUBTS.get(threshold, ""), **score.rates()})
        return rows


def as_labels(found: Classification) -> dict[str, Any]:
    """A classification with the field names and values of the labels."""
    return {
        "mode": str(found.mode),
        "confidence": str(found.confidence),
        "fast_path": found.fast_path,
        "debate": str(found.debate),
        "stakes": str(found.stakes),
        "debate_bypass": None if found.bypass is None else str(found.bypass),
    }


def evaluate(book: RuleBook, items: Iterable[Mapping[str, Any]]) -> Evaluation:
    """Classifies every item and compares it with its labels; a field that is missing or null in an item is not scored."""
    result = Evaluation()
    for item in items:
        found, score = weigh(book, item["text"])
        got = as_labels(found)
        missed = _compare(result, item, got)
        if item.get("mode") is not None:
            result.weighed.append((item["mode"], got["mode"], score))
            counts = result.reliability.setdefault(_way(got, score), [0, 0])
            counts[0] += 1
            counts[1] += item["mode"] == got["mode"]
        if missed:
            named = {key: item[key] for key in ("id", "lang") if key in item}
            result.wrong.append({**named, "text": item["text"], "wrong": missed, "rules": list(found.rules)})
    return result


def _way(got: Mapping[str, Any], score: int | None) -> str:
    """How a mode was decided: by a firm rule, or by words with a small or a large score."""
    name = f"{got['mode']} {got['confidence']}" if got["mode"] == Mode.ACTION else str(got["mode"])
    if score is None:
        return f"{name}, firm rule"
    return f"{name}, weighed, {'near' if abs(score) < NEAR else 'far from'} the threshold"


def _compare(result: Evaluation, item: Mapping[str, Any], got: Mapping[str, Any]) -> dict[str, Any]:
    missed: dict[str, Any] = {}
    if item.get("mode") is not None:
        result.overall.count(item["mode"], got["mode"])
        result.by_language[str(item.get("lang", "?"))].count(item["mode"], got["mode"])
        if item["mode"] != got["mode"]:
            missed["mode"] = {"expected": item["mode"], "got": got["mode"]}
    for name in FIELDS:
        expected = item.get(name)
        if expected is not None:
            result.agreed[name][1] += 1
            result.agreed[name][0] += expected == got[name]
            if expected != got[name]:
                missed[name] = {"expected": expected, "got": got[name]}
    return missed


def summary(result: Evaluation) -> Sequence[str]:
    """The scores as lines of text, followed by every wrong item."""
    lines = [_line("all", result.overall)]
    lines += [_line(name, score) for name, score in sorted(result.by_language.items())]
    lines += [f"{name:<14} agreed {agreed}/{scored}" for name, (agreed, scored) in result.agreed.items()]
    for way, (decided, right) in sorted(result.reliability.items()):
        lines.append(f"{way:<48} right {right}/{decided} {_rate(right, decided):.1%}")
    for item in result.wrong:
        missed = ", ".join(f"{name} {v['got']} instead of {v['expected']}" for name, v in item["wrong"].items())
        lines.append(f"wrong: {item.get('id', '')} {item['text']!r}: {missed} ({item['rules'][0]})")
    return lines


def curve_lines(result: Evaluation) -> Sequence[str]:
    """The curve as a table: false positives against false negatives at each threshold."""
    lines = ["threshold  doubt     accuracy  false positives  false negatives"]
    lines += [
        f"{row['threshold']:>9}  {row['doubt']:<8}  {row['accuracy']:>8.1%}  {row['false_positive_rate']:>15.1%}"
        f"  {row['false_negative_rate']:>15.1%}"
        for row in result.curve()
    ]
    return lines


def _line(name: str, score: Score) -> str:
    rates = score.rates()
    return (
        f"{name:<6} accuracy {rates['accuracy']:.1%} ({score.correct}/{score.total})"
        f"  false positives {rates['false_positive_rate']:.1%} ({score.false_positives}/{score.answers})"
        f"  false negatives {rates['false_negative_rate']:.1%} ({score.false_negatives}/{score.actions})"
    )


def _rate(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
