"""Deployment, destruction and bulk in other languages: as orders that govern something, not as words that look alike."""

import pytest

from tests.unit.router.reading import decide


@pytest.mark.parametrize(
    "text",
    [
        "borra todo",
        "apaga tudo",
        "supprime tout",
        "lösche alles",
        "cancella tutto",
        "удали всё",
        "全部删掉",
        "删除全部",
        "全部消して",
        "전부 삭제해",
        "lösch alles",
        "全删了",
        "delete it all",
    ],
)
def test_delete_everything_has_high_stakes(text: str) -> None:
    assert decide(text).stakes == "high"


@pytest.mark.parametrize(
    "text",
    [
        "publica el paquete en npm",
        "despliega a producción",
        "publie la version 2",
        "mets la nouvelle version en production",
        "coloca em produção",
        "veröffentliche das Paket",
        "部署到正式環境",
        "本番環境に公開してください",
        "운영 서버에 배포해줘",
        "mets en prod",
        "1.4版本发到npm",
    ],
)
def test_a_deployment_has_high_stakes(text: str) -> None:
    assert decide(text).stakes == "high"


@pytest.mark.parametrize(
    "text",
    [
        "lanza las pruebas",
        "haz pública la función",
        "rends la méthode publique",
        "ajoute un livre à la liste",
        "lance les tests",
        "公開メソッドにして",
        "显示所有订单",
        "发布按钮改成蓝色",
        "すべて表示して",
        "모두 보여줘",
        "tout est blanc",
    ],
)
def test_words_for_launch_public_books_and_all_that_govern_nothing_start_no_debate(text: str) -> None:
    assert decide(text).stakes == "none"
