"""A message is decided by all its sentences: work and faults outweigh questions, thanks and praise around them."""

import pytest

from pointsman.services.router.domain.enums import Mode
from tests.unit.router.reading import mode

ANSWER, ACTION = Mode.ANSWER, Mode.ACTION


@pytest.mark.parametrize(
    "text",
    [
        "pourquoi la marge est double ici ? mets la même que dans le menu",
        "por que la letra es distinta aquí? cambia la fuente del título",
        "为什么这两个图标不一样，改成跟左边一样",
        "なぜ見出しだけ太いのですか？細く変更してください。",
        "왜 제목만 굵어? 얇게 바꿔줘",
        "Warum steht das Logo unten? Verschieb es nach oben.",
    ],
)
def test_an_order_after_a_question_is_work(text: str) -> None:
    assert mode(text) is ACTION


@pytest.mark.parametrize(
    "text",
    [
        "第二页的图片打不开，是网络的问题吗",
        "La pantalla de cobros no carga. ¿Será por el idioma?",
        "L'import plante au bout de dix lignes. C'est à cause du format ?",
        "一覧が真っ白です。設定のせいでしょうか？",
    ],
)
def test_a_fault_before_a_question_is_work(text: str) -> None:
    assert mode(text) is ACTION


@pytest.mark.parametrize(
    "text",
    [
        "你好，这个库支持离线吗？有没有上限？",
        "Gracias. ¿Y cuánto dura la sesión? ¿Se puede alargar?",
        "ありがとうございます。オフラインでも使えますか？",
        "Merci ! Et combien de temps dure la session ?",
    ],
)
def test_questions_with_thanks_around_them_are_talk(text: str) -> None:
    assert mode(text) is ANSWER


@pytest.mark.parametrize("text", ["모든 제목 변경해 주세요", "把标题改成红色的", "名前を変えてもらいたいです"])
def test_a_change_of_something_with_the_name_of_a_text_is_work(text: str) -> None:
    assert mode(text) is ACTION
