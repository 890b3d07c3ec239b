"""How well the rules do on our own sample: the half they were written with, and the half that was held out."""

import json
from pathlib import Path
from typing import Any

import pytest

from pointsman.services.router.domain.evaluation import evaluate, summary
from pointsman.services.router.rules import standard_rule_book

DATA = Path(__file__).parents[2] / "data"
ENOUGH = 10
LANGUAGES = {"en", "zh", "ja", "es", "de", "fr"}


def items(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["routing_seen.jsonl", "routing_held_out.jsonl"])
def test_more_than_90_percent_are_right_and_fewer_than_5_percent_false_positives(name: str) -> None:
    result = evaluate(standard_rule_book(), items(name))
    rates = result.overall.rates()
    assert rates["accuracy"] > 0.9, summary(result)
    assert rates["false_positive_rate"] < 0.05, summary(result)
    for language, score in result.by_language.items():
        if score.total < ENOUGH:
            continue
        assert score.rates()["accuracy"] >= 0.85, (language, summary(result))
    for field, (agreed, scored) in result.agreed.items():
        assert agreed / scored > 0.9, (field, summary(result))


@pytest.mark.parametrize("name", ["routing_seen.jsonl", "routing_held_out.jsonl"])
def test_no_message_that_names_a_file_or_a_url_is_missed(name: str) -> None:
    result = evaluate(standard_rule_book(), items(name))
    missed = [item["text"] for item in result.wrong if item["wrong"].get("mode", {}).get("got") == "ANSWER"]
    assert not [text for text in missed if any(mark in text for mark in ("://", ".py", ".ts", ".md", "src/", "```"))]


def test_the_sample_has_more_than_300_messages_in_six_languages_and_none_twice() -> None:
    texts = [item["text"] for name in ("routing_seen.jsonl", "routing_held_out.jsonl") for item in items(name)]
    assert len(texts) == len(set(texts)) > 300
    assert {item["lang"] for item in items("routing_held_out.jsonl")} >= LANGUAGES


def test_null_and_missing_fields_are_not_scored() -> None:
    result = evaluate(standard_rule_book(), [{"text": "pwd", "mode": "ACTION", "confidence": None}])
    assert result.agreed["confidence"] == [0, 0]
    assert result.as_dict()["accuracy"] == 1.0


def test_errors_are_counted_each_way_and_listed() -> None:
    wrong = [
        {"id": "a", "text": "what is a monad?", "mode": "ACTION", "lang": "en"},
        {"id": "b", "text": "fix the build", "mode": "ANSWER", "lang": "en", "stakes": "high"},
        {"id": "c", "text": "thanks", "mode": "ANSWER", "lang": "xx"},
    ]
    result = evaluate(standard_rule_book(), wrong).as_dict()
    assert (result["accuracy"], result["false_positive_rate"], result["false_negative_rate"]) == (0.3333, 0.5, 1.0)
    assert [item["id"] for item in result["wrong"]] == ["a", "b"]
    assert result["by_lang"]["xx"]["accuracy"] == 1.0
    assert result["agreement"]["stakes"] == {"scored": 1, "agreed": 0, "rate": 0.0}
