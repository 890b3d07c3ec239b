"""The second layer: deterministic integer weights that decide only what no firm rule does."""

import json
from pathlib import Path

import pytest

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.classification.rule_book import with_doubt
from pointsman.services.router.domain.classification.second_layer import features_of
from pointsman.services.router.domain.enums import Doubt, Mode
from pointsman.services.router.rules import WEIGHT_FILE, second_layer, standard_rule_book
from pointsman.services.router.rules.training import read_items, train
from tests.unit.router.reading import decide

CORPUS = Path(__file__).parents[2] / "data" / "routing_seen.jsonl"
MOST_BYTES = 2_000_000


def test_the_weights_are_what_the_training_command_makes_of_the_corpus() -> None:
    weights = train(read_items([str(CORPUS)]))
    layer = second_layer()
    assert weights.pop("") == layer.bias
    assert weights == layer.weights


def test_weights_are_integers_in_a_small_file_with_the_version_of_the_rules() -> None:
    raw = json.loads(WEIGHT_FILE.read_text(encoding="utf-8"))
    assert raw["version"] == standard_rule_book().document.version
    assert all(type(value) is int for part in ("weights", "leans") for value in raw[part].values())
    assert WEIGHT_FILE.stat().st_size < MOST_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "el reloj sigue marcando la hora vieja",
        "la flecha azul apunta para el otro lado",
        "o relógio ainda mostra a hora antiga",
        "l'horloge affiche encore l'ancienne heure",
        "the boat list stays empty even though there are seven of them",
        "箭头还是指向左边",
    ],
)
def test_complaints_without_a_word_of_fault_are_work(text: str) -> None:
    assert decide(text).mode is Mode.ACTION


@pytest.mark.parametrize("doubt", [Doubt.BALANCED, Doubt.ACTION, Doubt.ANSWER, Doubt.RULES])
@pytest.mark.parametrize("text", ["fix the build", "what is a monad?", "thanks", "look at src/app.py"])
def test_what_a_firm_rule_decides_no_setting_changes(text: str, doubt: Doubt) -> None:
    assert classify(with_doubt(standard_rule_book(), doubt), text).mode is decide(text).mode


def test_each_setting_is_named_in_the_version_and_the_rules_alone_have_no_layer() -> None:
    book = standard_rule_book()
    assert with_doubt(book, Doubt.BALANCED).version == book.version
    assert with_doubt(book, Doubt.ACTION).version == f"{book.version}/action"
    alone = with_doubt(book, Doubt.RULES)
    assert (alone.version, alone.layer) == (f"{book.version}/rules", None)


def test_a_higher_threshold_never_makes_more_of_it_action() -> None:
    texts = [item["text"] for item in read_items([str(CORPUS)])[::40]]
    actions = [
        {text for text in texts if classify(with_doubt(standard_rule_book(), doubt), text).mode is Mode.ACTION}
        for doubt in (Doubt.ANSWER, Doubt.BALANCED, Doubt.ACTION)
    ]
    assert actions[0] <= actions[1] <= actions[2]
    assert actions[0] < actions[2]


def test_features_ignore_accents_and_traditional_forms_and_long_middles() -> None:
    assert features_of("añade más") == features_of("anade mas")
    assert features_of("還是舊的") == features_of("还是旧的")
    long = ["start", *("filler" for _ in range(1000)), "end"]
    assert features_of(" ".join(long)) == features_of(" ".join([*long, "end"][:81] + ["filler"] * 200 + ["end"]))


@pytest.mark.parametrize(
    ("text", "verb"),
    [("udpate the readme", "udpate"), ("delte the users table", "delte"), ("refacter the parser", "refacter")],
)
def test_a_verb_within_one_edit_is_understood_and_shown_as_it_is_spelt(text: str, verb: str) -> None:
    found = decide(text)
    assert found.mode is Mode.ACTION
    assert any(text[trigger.start : trigger.end] == verb for trigger in found.triggers)


@pytest.mark.parametrize("text", ["crate of apples", "delta of the river", "texts by Kafka"])
def test_a_word_of_its_own_is_no_misspelling(text: str) -> None:
    assert decide(text).mode is Mode.ANSWER
