"""Messages as people write them: tags after orders, complaints in the form of questions, good news, what is put off."""

import pytest

from pointsman.services.router.domain.enums import Mode
from tests.unit.router.reading import decide


@pytest.mark.parametrize(
    "text",
    [
        "rename the cargo column, ok?",
        "make sure the ferry tests pass then commit okay?",
        "run the formatter over the harbour module, can you?",
        "quita el borde del mapa, vale?",
        "apaga as linhas vazias, tá?",
        "supprime les lignes vides, d'accord ?",
        "lösch die leeren zeilen, ja?",
        "空行を消して、いい？",
        "빈 줄을 지워줘, 알겠지?",
    ],
)
def test_a_tag_after_an_order_does_not_make_it_a_question(text: str) -> None:
    assert decide(text).mode is Mode.ACTION


@pytest.mark.parametrize(
    "text",
    [
        "so the ferry leaves at nine, right?",
        "corriste las pruebas o no?",
        "entonces el barco sale a las nueve, no?",
        "alors le bateau part à neuf heures, non ?",
    ],
)
def test_a_tag_after_a_statement_leaves_it_a_question(text: str) -> None:
    assert decide(text).mode is Mode.ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "why is the anchor icon still red",
        "how come nothing is listed under harbours",
        "what happened to the tide table",
        "isnt it supposed to close when i press escape?",
    ],
)
def test_a_question_that_only_complains_is_a_fault(text: str) -> None:
    assert decide(text).mode is Mode.ACTION


@pytest.mark.parametrize(
    "text", ["why do we still need two of them?", "what happened in 1969?", "why does rust need lifetimes"]
)
def test_a_question_that_asks_stays_one(text: str) -> None:
    assert decide(text).mode is Mode.ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "ya lo probé en el barco y anda bien",
        "reiniciei a máquina e voltou",
        "je viens de relancer la machine, tout marche",
        "mit zwei geräten getestet, alles läuft",
        "再起動したら動きました",
        "重启之后就正常了",
        "재시작하니까 잘 된다",
        "restarted the box, everything runs again",
    ],
)
def test_good_news_asks_for_nothing(text: str) -> None:
    assert decide(text).mode is Mode.ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "anda bien en el barco pero en el puerto no carga",
        "reiniciei e continua travando",
        "j'ai relancé et rien ne s'affiche",
        "hab neu gestartet und trotzdem kommt der gleiche fehler",
        "再起動したけどまだ動かない",
        "重启了还是不行",
        "재시작했는데 아직 안돼",
    ],
)
def test_good_news_with_a_turn_is_a_fault(text: str) -> None:
    assert decide(text).mode is Mode.ACTION


@pytest.mark.parametrize(
    "text",
    [
        "dont touch the harbour styles, only change the label",
        "no dont use moment, use plain dates",
        "don't add a table, extend the old one",
    ],
)
def test_an_order_after_what_is_not_to_be_done_counts(text: str) -> None:
    assert decide(text).mode is Mode.ACTION


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("por que voce mudou a rota? remove isso", Mode.ACTION),
        ("왜 지도를 뺐어? 다시 넣어", Mode.ACTION),
        ("what i want is a list of all piers with a map next to each", Mode.ACTION),
        ("what i want to know is how tides work", Mode.ANSWER),
    ],
)
def test_what_is_wanted_after_or_inside_the_form_of_a_question(text: str, mode: Mode) -> None:
    assert decide(text).mode is mode
