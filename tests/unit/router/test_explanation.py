"""`route explain` and `route eval --curve`: why a message was decided, and what other thresholds would cost."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.route import app
from pointsman.services.router.domain.evaluation import CURVE, evaluate
from pointsman.services.router.domain.explanation import explain, lines_of, readable
from pointsman.services.router.rules import standard_rule_book

runner = CliRunner()


def shown(*arguments: str) -> Any:
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Thanks a lot! Please rename the export button. Is that fast?", "Please rename the export button."),
        ("谢谢！把导出按钮改成蓝色的。你觉得呢？", "把导出按钮改成蓝色的。"),
        ("Hello there. How long does a session last?", "How long does a session last?"),
    ],
)
def test_the_sentence_that_decides_is_named(text: str, sentence: str) -> None:
    assert explain(standard_rule_book(), text).sentence == sentence


def test_what_would_have_changed_the_decision_is_tried() -> None:
    explained = explain(standard_rule_book(), "How long is a session? Delete the old drafts.")
    assert "without that sentence: ANSWER" in explained.changes


def test_a_weighed_decision_shows_its_score_and_its_heaviest_words() -> None:
    found = shown("explain", "el reloj sigue marcando la hora vieja", "--json")
    assert found["decision"]["mode"] == "ACTION"
    assert found["score"] > found["threshold"]
    assert found["weights"]
    assert "with doubt=rules: ANSWER" in found["changes"]


def test_a_firm_decision_has_no_score() -> None:
    explained = explain(standard_rule_book(), "fix the build in src/")
    assert explained.score is None
    assert "its words: 'fix', 'src/'" in "\n".join(lines_of(explained))


@pytest.mark.parametrize("feature", ["^ is", "norma-", "#2", "?the", "uhr$", "^$", "el"])
def test_a_feature_is_readable(feature: str) -> None:
    assert not set("^$#") & set(readable(feature))


def test_the_curve_trades_false_positives_for_false_negatives() -> None:
    file = Path(__file__).parents[2] / "data" / "routing_held_out.jsonl"
    rows = shown("eval", str(file), "--curve", "--json")["curve"]
    assert [row["threshold"] for row in rows] == list(CURVE)
    positives = [row["false_positive_rate"] for row in rows]
    negatives = [row["false_negative_rate"] for row in rows]
    assert positives == sorted(positives, reverse=True)
    assert negatives == sorted(negatives)
    assert {row["doubt"] for row in rows} == {"", "action", "balanced", "answer"}


def test_the_curve_at_the_standard_threshold_is_the_evaluation() -> None:
    items = [{"text": text, "mode": "ACTION"} for text in ("the boat is gone", "fix it", "hm", "what is a boat?")]
    result = evaluate(standard_rule_book(), items)
    standard = next(row for row in result.curve() if row["threshold"] == 0)
    assert standard["accuracy"] == result.as_dict()["accuracy"]
    assert sum(row["decided"] for row in result.as_dict()["reliability"].values()) == len(items)
