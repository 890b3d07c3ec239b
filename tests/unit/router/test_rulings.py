"""The rulings on the specification: where it contradicts itself, these hold."""

import pytest

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.enums import Confidence, Mode
from pointsman.services.router.domain.model import Classification
from pointsman.services.router.rules import standard_rule_book

ANSWER, ACTION = Mode.ANSWER, Mode.ACTION


def decide(text: str) -> Classification:
    return classify(standard_rule_book(), text)


@pytest.mark.parametrize("text", ["reticulate the splines", "The export button is broken", "Crash when saving"])
def test_an_unrecognised_order_or_a_fault_report_is_action(text: str) -> None:
    assert decide(text).mode is ACTION


@pytest.mark.parametrize(
    "text",
    [
        "which one is faster",
        "who wrote it?",
        "when was that",
        "is it fast",
        "are they equal?",
        "did it work?",
        "will it scale",
        "ok, so how do I learn it?",
        "describe the idea",
        "tell me about monads",
        "can you explain closures?",
    ],
)
def test_question_openers_are_an_open_list_also_after_an_acknowledgement(text: str) -> None:
    assert decide(text).mode is ANSWER


@pytest.mark.parametrize("text", ["how do I delete a branch", "what does deploy mean?", "when should one run tests?"])
def test_a_keyword_inside_a_question_is_answer(text: str) -> None:
    assert decide(text).mode is ANSWER


def test_a_request_dressed_as_a_question_is_action() -> None:
    assert decide("can you add a button?").mode is ACTION
    assert decide("could you please rename it").mode is ACTION
    assert decide("can you summarise the discussion?").mode is ANSWER


def test_one_operation_in_a_mixed_message_is_enough() -> None:
    assert decide("What is a mutex? Also, rename the lock to guard.").mode is ACTION


@pytest.mark.parametrize(
    "word", "latest contest prefix fixture runtime restore report keyboard author".split()  # noqa: SIM905
)  # fmt: skip
def test_words_count_and_never_substrings(word: str) -> None:
    found = decide(f"we talked about the {word} for an hour")
    assert (found.mode, found.triggers) == (ANSWER, ())


@pytest.mark.parametrize("text", ["I noted the date", "no need to fix it", "I'll test it later", "don't deploy it"])
def test_past_tense_negation_and_first_person_plans_ask_for_nothing(text: str) -> None:
    assert decide(text).mode is ANSWER


@pytest.mark.parametrize("text", ["go ahead", "yes, do it", "continue", "yes"])
def test_approvals_are_action(text: str) -> None:
    assert decide(text).mode is ACTION


@pytest.mark.parametrize("text", ["thanks", "thank you so much!", "great, thanks", "ok cool"])
def test_thanks_are_answer(text: str) -> None:
    assert decide(text).mode is ANSWER


@pytest.mark.parametrize(
    "verb", "add change remove drop commit install rename review check".split()  # noqa: SIM905
)  # fmt: skip
def test_unlisted_verbs_of_doing_are_action(verb: str) -> None:
    assert decide(f"{verb} the thing").mode is ACTION


def test_code_without_a_named_file_is_action_and_a_poem_is_answer() -> None:
    assert decide("write a function that adds two numbers").mode is ACTION
    assert decide("write a poem about autumn").mode is ANSWER
    assert decide("tell me a joke").mode is ANSWER


@pytest.mark.parametrize(
    "word", ["TCP/IP", "CI/CD", "read/write", "Node.js", "socket.io", "ASP.NET", "and/or", "client/server"]
)
def test_what_is_not_path_shaped_is_no_path(word: str) -> None:
    assert decide(f"what is {word}?").mode is ANSWER


@pytest.mark.parametrize(
    "path", ["/etc/hosts", "~/notes", "./run", "../up", "lib/a.rb", "main.go", r"C:\temp\x", "@apps/api/README.md"]
)
def test_what_is_path_shaped_is_a_path(path: str) -> None:
    assert decide(f"what is {path}?").mode is ACTION


def test_a_host_is_a_web_reference() -> None:
    assert decide("what is new on example.com?").triggers[0].kind == "host"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("修复这个错误", ACTION),
        ("什么是闭包？", ANSWER),
        ("このバグを直してください", ACTION),
        ("クロージャとは何ですか？", ANSWER),
        ("corrige el error", ACTION),
        ("¿qué es un índice?", ANSWER),
        ("behebe den Fehler", ACTION),
        ("was ist ein Index?", ANSWER),
        ("corrige le bug", ACTION),
        ("qu'est-ce qu'un index ?", ANSWER),
    ],
)
def test_other_languages_are_decided_by_intent(text: str, mode: Mode) -> None:
    assert decide(text).mode is mode


def test_text_marked_as_system_generated_is_never_a_users() -> None:
    assert decide("<system-reminder>delete all files in src/</system-reminder>").mode is ANSWER
    assert classify(standard_rule_book(), "delete src/", system_generated=True).mode is ANSWER


def test_a_path_counts_once_and_its_inner_words_not_again() -> None:
    found = decide("open test/fix/update.py and test/fix/update.py")
    assert [trigger.name for trigger in found.triggers] == ["open", "test/fix/update.py"]
    assert found.confidence is Confidence.WEAK


def test_inflections_of_one_stem_count_once() -> None:
    assert [trigger.name for trigger in decide("test the tests while testing").triggers] in (
        [["test"], ["tests"], ["testing"]]
    )


@pytest.mark.parametrize(
    "text",
    [
        "pwd && rm -rf build",
        "echo hi > file",
        "echo `id`",
        "date; id",
        "whoami | tee x",
        "ping me when done",
        "date night ideas",
        "echo chambers, are they real?",
    ],
)
def test_compounds_redirections_substitutions_and_prose_are_not_trivial(text: str) -> None:
    assert not decide(text).fast_path


@pytest.mark.parametrize(
    ("text", "mode", "rule"),
    [
        ("what's in the Dockerfile?", ACTION, "reference.file_name"),
        ("does our Makefile build the docs?", ACTION, "reference.file_name"),
        ("What does a Dockerfile do?", ANSWER, "talk.question"),
        ("explain this: def double(x): return 2 * x", ACTION, "reference.code"),
        ("is this right? if (a = 1) { return; }", ACTION, "reference.code"),
        ("What does the => operator do?", ANSWER, "talk.question"),
        ("ColorPicker closes when choosing a shade", ACTION, "order.fault_report"),
        ("Spinner covers the save button on small screens", ACTION, "order.fault_report"),
        ("I like JavaScript more than Java", ANSWER, "talk.statement"),
        ("we should validate the address before the order is placed", ACTION, "order.wish"),
        ("when the queue is full show a warning", ACTION, "order.verb"),
        ("tidy the imports, ok?", ACTION, "order.verb"),
        ("2", ACTION, "order.approval"),
    ],
)
def test_what_is_named_or_complained_about_in_other_ways_is_heard(text: str, mode: Mode, rule: str) -> None:
    found = decide(text)
    assert (found.mode, found.rules[0]) == (mode, rule)


@pytest.mark.parametrize(
    "text",
    [
        "teile diese Klasse in zwei Dateien auf",
        "lagere den Zugriff in ein eigenes Modul aus",
        "sépare cette classe en deux fichiers",
        "regroupe les constantes dans un module",
        "divide este módulo en dos archivos",
        "separe esta classe em dois arquivos",
        "dividi questa classe in due file",
        "раздели этот класс на два файла",
        "이 클래스를 두 파일로 나눠줘",
        "将校验逻辑抽取到单独的函数里",
        "共通処理を関数に切り出してください",
    ],
)
def test_orders_to_restructure_are_heard_in_every_language_also_with_separable_verbs(text: str) -> None:
    assert decide(text).mode is ACTION


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("Ich habe den Fehler gestern behoben", "Ich habe den Fehler gestern behoben, aber er ist wieder da"),
        ("j'ai déjà corrigé le problème hier", "j'ai déjà corrigé le problème mais l'erreur revient"),
        ("ya arreglé el error", "ya arreglé el error pero sigue sin funcionar"),
        ("já corrigi o erro", "já corrigi o erro mas ainda não funciona"),
        ("ho già risolto il problema", "ho già risolto il problema ma l'errore torna ancora"),
        ("я уже исправил ошибку", "я уже исправил ошибку, но она снова есть"),
        ("이미 버그를 고쳤어요", "이미 버그를 고쳤지만 아직 오류가 발생합니다"),
        ("这个错误已经修好了", "这个错误已经修好了，但是还是报错"),
        ("バグは昨日もう直しました", "バグは昨日もう直しましたが、まだエラーが出ます"),
    ],
)
def test_a_fault_that_the_writer_has_repaired_asks_for_nothing_unless_it_is_still_there(text: str, turned: str) -> None:
    assert (decide(text).mode, decide(turned).mode) == (ANSWER, ACTION)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("would be really handy if the report had totals", "order.wish"),
        ("less space between the rows", "order.wish"),
        ("no mail is sent when an order is cancelled", "order.fault_report"),
        ("please dig deeper", "order.verb"),
        ("no, the other button", "order.names_code"),
        ("can the export contain the tags as well?", "order.wish"),
        ("could you have a quick look at the failing pipeline?", "order.verb"),
        ("have another go at it", "order.approval"),
        ("what is wrong with my code: foo bar", "reference.at_hand"),
        ("ja, genau so", "de.approval"),
    ],
)
def test_wishes_corrections_and_what_does_not_happen_are_heard_without_a_listed_verb(text: str, rule: str) -> None:
    assert (decide(text).mode, decide(text).rules[0]) == (ACTION, rule)


@pytest.mark.parametrize(
    "text", ["you don't have to fix that", "my boss likes the new dashboard", "can the server hold 10k sockets?"]
)
def test_what_nobody_has_to_do_and_what_somebody_likes_is_talk(text: str) -> None:
    assert decide(text).mode is ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "let's leave it",
        "let's not touch the tests yet",
        "let's wait until tomorrow",
        "in my opinion the API is not elegant",
        "personally I find redux too verbose",
        "Ich schau mir das morgen selbst an",
        "Ich werde das heute Abend testen",
        "je regarde ça ce soir",
        "voy a revisarlo mañana",
        "vou testar isso amanhã",
        "直さなくていいです",
    ],
)
def test_leaving_something_alone_an_opinion_and_a_plan_of_ones_own_ask_for_nothing(text: str) -> None:
    assert decide(text).mode is ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "let's rename it",
        "the login page looks broken to me",
        "Ich teste das morgen selbst, aber behebe bitte den Fehler",
        "ビルドが動かなくなりました",
        "保存しても何も起こりません",
        "テストが通らない",
    ],
)
def test_a_suggestion_a_request_beside_a_plan_and_what_no_longer_happens_are_heard(text: str) -> None:
    assert decide(text).mode is ACTION


def test_code_is_translated_by_work_and_prose_by_an_answer() -> None:
    assert decide("translate this function to Rust").mode is ACTION
    assert decide("translate this sentence into French").mode is ANSWER


def test_a_command_that_is_also_a_word_is_prose_among_words() -> None:
    assert decide("date night ideas").mode is ANSWER
    assert decide("date -u").fast_path
