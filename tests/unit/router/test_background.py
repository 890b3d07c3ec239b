"""What is said around an order or a question and asks for nothing, in every language of the samples."""

import pytest

from pointsman.services.router.domain.enums import Mode
from tests.unit.router.reading import mode

ANSWER, ACTION = Mode.ANSWER, Mode.ACTION


@pytest.mark.parametrize(
    "text",
    [
        "I'm new to Helm and the charts confuse me. When does one need a hook?",
        "Is it fine to catch everything? The linter complains about it all the time.",
        "We need a broker for ten thousand messages a second. Would you take Kafka?",
        "Which name is better for a counter? retryCount feels long",
        "Estoy empezando con Go y quiero trabajar en la nube. ¿Qué libro me conviene?",
        "Ich lerne Rust und habe Probleme mit Lifetimes. Gibt es eine Eselsbrücke?",
        "Je débute et cette erreur revient souvent chez les autres. Est-ce grave ?",
        "我刚学Rust，老是报错。有没有好的学习方法？",
        "Rustを始めましたが、エラーばかり出ます。良い本はありますか？",
    ],
)
def test_a_fault_or_a_wish_before_a_question_tells_why_somebody_asks(text: str) -> None:
    assert mode(text) is ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "The import hangs at row 900. Any idea why?",
        "login is broken since noon, any idea?",
        "Der Export geht seit gestern nicht. Woran liegt das?",
        "L'export est cassé depuis hier, une idée ?",
        "La búsqueda no funciona desde ayer, ¿alguna idea?",
        "导出坏了，怎么回事？",
        "検索ができません。原因は何でしょうか？",
    ],
)
def test_a_fault_whose_question_is_about_it_stays_a_report(text: str) -> None:
    assert mode(text) is ACTION


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("that explains the crash, thanks a lot", "thanks, but the tests are still red"),
        ("we upgraded and haven't seen a single crash since", "we upgraded, but the worker still crashes"),
        ("Danke, dass du den Fehler behoben hast!", "Danke, aber der Button ist immer noch zu klein"),
        ("Merci d'avoir corrigé le bug !", "Merci, mais le bouton est toujours trop petit"),
        ("¡Gracias por arreglar el error!", "Gracias, pero el botón sigue siendo muy pequeño"),
        ("谢谢你帮我修好了登录", "谢谢，不过按钮还是太小了"),
        ("バグを直してくれてありがとう", "ありがとう、でもボタンがまだ小さいです"),
    ],
)
def test_thanks_and_good_news_ask_for_nothing_unless_something_is_still_wrong(text: str, turned: str) -> None:
    assert (mode(text), mode(turned)) == (ANSWER, ACTION)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("no code please, just explain the idea", "don't change the API, just rename the helper"),
        ("Ändere nichts, erklär mir nur, wie es geht.", "Ändere nichts an der API, aber benenne den Helfer um."),
        ("Ne change rien, dis-moi juste ce que tu en penses", "Ne change pas l'API, mais renomme la fonction."),
        ("No cambies nada, solo dime qué opinas.", "No cambies la API, pero renombra la función."),
        ("先别改代码，只说说你的想法", "不要改接口，只把内部函数改个名字"),
        ("何も変更せずに、仕組みだけ教えてください。", "APIは変更しないで、関数名だけ変えてください"),
    ],
)
def test_what_is_not_to_be_done_asks_for_nothing_and_what_is_said_beside_it_does(text: str, order: str) -> None:
    assert (mode(text), mode(order)) == (ANSWER, ACTION)


@pytest.mark.parametrize("text", ["别忘了更新测试", "把日志级别改成 debug", "Mach die Schrift nicht so klein"])
def test_what_only_looks_like_a_negated_order_is_one(text: str) -> None:
    assert mode(text) is ACTION


@pytest.mark.parametrize(
    "text",
    [
        "fixed it myself, was a stale cache",
        "Den Bug habe ich heute früh schon gefixt.",
        "Um das Deployment kümmere ich mich morgen selbst.",
        "C'est moi qui ai réglé le bug hier.",
        "Je ferai la mise en production moi-même ce soir, inutile de t'en charger.",
        "El bug lo solucioné yo ayer, no te preocupes.",
        "Del despliegue me encargo yo mañana.",
        "我已经自己改好了，是个拼写错误。",
        "部署我明天自己来，你不用操心。",
        "今朝自分で修正したので、もう大丈夫です。",
        "デプロイは明日自分でやるので大丈夫です。",
    ],
)
def test_what_the_writer_did_or_will_do_himself_asks_for_nothing(text: str) -> None:
    assert mode(text) is ANSWER


@pytest.mark.parametrize(
    ("told", "done"),
    [
        ("Kannst du mir erklären, wie ein Baum wächst?", "Such im Netz nach der Lücke und sag mir, ob sie uns trifft"),
        ("Tu peux m'expliquer comment marche un index ?", "Relis ma branche et dis-moi ce qui cloche"),
        ("¿Puedes explicarme qué es un índice?", "Busca en internet la versión nueva y dime si nos afecta"),
        ("能给我解释一下什么是索引吗？", "能不能加上校验，再告诉我改了什么？"),
        ("索引とは何か説明してもらえますか？", "最新版をネットで調べて、影響があるか教えて"),
    ],
)
def test_to_explain_is_talk_and_to_find_out_and_tell_is_work(told: str, done: str) -> None:
    assert (mode(told), mode(done)) == (ANSWER, ACTION)


@pytest.mark.parametrize(
    "text",
    [
        "how long does it take to migrate an app to the cloud?",
        "把一个系统迁移到云上一般要多久？",
        "クラウドへの移行はだいたいどのくらいかかりますか？",
        "¿Cuánto se tarda en migrar una aplicación?",
    ],
)
def test_what_an_operation_costs_in_general_is_a_question(text: str) -> None:
    assert mode(text) is ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "and now the docs as well",
        "ditto for the admin panel",
        "das Gleiche bitte auch für die Lieferscheine",
        "pareil pour les factures",
        "lo mismo para las facturas",
        "谢谢，顺便把文档也补上",
        "請求書も同じようにお願いします",
    ],
)
def test_more_of_the_same_is_an_order(text: str) -> None:
    assert mode(text) is ACTION


@pytest.mark.parametrize(
    ("general", "at_hand"),
    [
        ("what belongs into a README?", "what belongs into our README?"),
        ("what is the point of a lockfile?", "what is the point of the lockfile?"),
        ("Wo berechnet man am besten Rabatte?", "Wo in unserem Code werden die Rabatte berechnet?"),
        ("Où calcule-t-on la TVA ?", "Où est-ce que notre code calcule la TVA ?"),
        ("¿Dónde se calcula el IVA?", "¿En qué parte de nuestro código se calcula el IVA?"),
        ("消費税はどこで計算しますか？", "うちのコードで消費税を計算しているのはどこですか？"),
    ],
)
def test_a_question_about_what_is_at_hand_is_action_and_one_about_its_kind_is_not(general: str, at_hand: str) -> None:
    assert (mode(general), mode(at_hand)) == (ANSWER, ACTION)
