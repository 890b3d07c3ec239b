"""What people tell of themselves, and faults that are told by what things do, in every language of the samples."""

import pytest

from pointsman.services.router.domain.enums import Mode
from tests.unit.router.reading import mode


@pytest.mark.parametrize(
    "text",
    [
        "microservices everywhere was a mistake for our team",
        "I had forgotten about leap seconds, good point",
        "gonna demo this to my sister tomorrow, she breaks everything",
        "Wir haben uns auf ein Release alle vier Wochen geeinigt.",
        "Ich mag Svelte, weil man dort weniger schreiben muss.",
        "On a finalement décidé de garder Stripe pour la Suisse.",
        "La migration s'est terminée ce matin sans une seule erreur, bravo !",
        "Creo que Vue y Svelte ya están bastante igualados.",
        "necesito un café, tengo mucho sueño",
        "我们上周开会决定先不迁移了",
    ],
)
def test_opinions_moods_decisions_and_good_news_ask_for_nothing(text: str) -> None:
    assert mode(text) is Mode.ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "the newsletter mails land in spam",
        "the sidebar jumps about 6px when you scroll on Firefox",
        "enemy falls through the bridge at low fps",
        "Tokenizer loops forever on an unterminated comment",
        "the spinner keeps spinning after the upload is done",
        "The age field accepts letters. It shouldn't.",
        "Der Import schlägt seit gestern fehl",
        "Seit dem Update werden Umlaute im Export als Fragezeichen dargestellt.",
    ],
)
def test_what_things_do_that_they_should_not_is_a_fault(text: str) -> None:
    assert mode(text) is Mode.ACTION


@pytest.mark.parametrize("text", ["echo rooms are what you get in small teams", "do customers care about our stack"])
def test_a_word_that_is_also_a_program_or_an_order_is_read_in_its_sentence(text: str) -> None:
    assert mode(text) is Mode.ANSWER


@pytest.mark.parametrize(
    "text", ["ping localhost && curl localhost:8080", "cd build && cmake .. || echo it failed there"]
)
def test_programs_in_a_chain_are_a_command_however_long(text: str) -> None:
    assert mode(text) is Mode.ACTION
