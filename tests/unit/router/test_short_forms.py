"""What people leave out: command lines, requests without a verb to ask, more of the same, events and wants of others."""

import pytest

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.enums import Bypass, Debate, Mode, Stakes
from pointsman.services.router.rules import standard_rule_book
from tests.unit.router.reading import mode

ANSWER, ACTION = Mode.ANSWER, Mode.ACTION


@pytest.mark.parametrize(
    ("command", "talk"),
    [
        ("pnpm i", "pnpm i guess is fine"),
        ("npm i -g typescript", "npm left-pad story"),
        ("yarn workspace web build", "yarn vs npm in 2024"),
        ("git stash pop", "git rebase or merge"),
        ("docker logs web --tail 100", "docker makes deployments boring, love it"),
        ("docker volume ls", "docker images explained"),
        ("aws s3 ls", "aws outage memes"),
        ("rails g model User", "rails is opinionated"),
        ("podman run -d nginx", "podman or docker"),
        ("vercel deploy", "vercel pricing thoughts"),
        ("kind create cluster", "kind people rule"),
        ("free -h", "free lunch theorem"),
        ("man git", "man pages are underrated"),
        ("brew services restart postgresql", "brew coffee first, then work"),
        ("$ cargo t", "cargo cult programming is a thing"),
    ],
)
def test_a_program_with_what_it_is_told_is_a_command_and_one_that_is_talked_about_is_not(
    command: str, talk: str
) -> None:
    assert (mode(command), mode(talk)) == (ACTION, ANSWER)


def test_a_command_behind_a_prompt_is_weighed_like_one_without() -> None:
    assert classify(standard_rule_book(), "$ ls -la").bypass is Bypass.READ_ONLY
    assert classify(standard_rule_book(), "$ podman system prune -a").stakes is Stakes.HIGH


@pytest.mark.parametrize(
    ("order", "talk"),
    [
        ("agreed, rename and commit", "agreed, tabs are better"),
        ("sure, merge it then", "sure, makes sense"),
        ("could be the cache, so try disabling it", "not sure but I think it depends"),
        ("maybe try without the cache", "maybe try telling me in simpler words"),
    ],
)
def test_an_order_behind_an_assurance_a_doubt_or_a_try_is_one(order: str, talk: str) -> None:
    assert (mode(order), mode(talk)) == (ACTION, ANSWER)


def test_an_assurance_keeps_the_stakes_and_bypasses_the_debate_and_a_doubt_does_not() -> None:
    sure = classify(standard_rule_book(), "yes I'm sure, force merge it into the release branch and delete the tag")
    assert (sure.mode, sure.stakes, sure.bypass) == (ACTION, Stakes.HIGH, Bypass.USER_OVERRIDE)
    unsure = classify(standard_rule_book(), "not sure it helps, but try dropping the sessions table")
    assert (unsure.debate, unsure.stakes, unsure.bypass) == (Debate.PLANNING, Stakes.HIGH, None)


@pytest.mark.parametrize(
    ("request_", "talk"),
    [
        ("mind having a look at my PR?", "mind explaining monads?"),
        ("care to take a stab at the memory leak?", "care to elaborate on that?"),
        ("would you be up for refactoring the parser?", "would you be up for a chat?"),
        ("are you able to rename the service?", "are you able to see images?"),
        ("are you able to split the controller?", "are you able to remember our last chat?"),
        ("could I trouble you to run the tests again?", "could I ask you to summarize our discussion?"),
        ("do you think you can speed up the query?", "do you think you could be conscious?"),
        ("wanna fix the lint errors?", "wanna talk?"),
        ("fancy having a go at the flaky spec?", "fancy a riddle?"),
        ("ビルドが落ちるので直してくれる？", "クロージャを説明してくれる？"),
        ("ダークモードを追加してもらっていい？", "意見を聞かせてもらえる？"),
        ("可以给导出加个进度条吗？", "可以给个例子吗？"),
        ("로그 좀 봐줄래?", "클로저가 뭔지 설명해 줄래?"),
        ("¿me ayudas a arreglar los tests?", "¿me ayudas a entender las mónadas?"),
        ("¿te importa revisar el despliegue?", "¿te importa si te pregunto algo?"),
        ("dá pra arrumar o bug do carrinho?", "dá pra viver de programação?"),
        ("riesci a vedere perché la build fallisce?", "riesci a spiegarmelo?"),
        ("magst du kurz den Build reparieren?", "magst du lieber Tee?"),
        ("tu veux bien relancer les tests ?", "tu veux bien me dire ce qu'est un index ?"),
    ],
)
def test_a_request_in_few_words_is_one_for_work_and_not_for_an_answer(request_: str, talk: str) -> None:
    assert (mode(request_), mode(talk)) == (ACTION, ANSWER)


@pytest.mark.parametrize(
    ("order", "talk"),
    [
        ("again", "thanks again"),
        ("once more, with tests this time", "once more with a concrete example"),
        ("now in rust", "now in simpler words"),
        ("now without lodash", "now with an example"),
        ("same but async", "same here"),
        ("same thing with the sidebar", "same with me, I never liked it"),
        ("di nuovo, ma con async", "di nuovo grazie"),
        ("otra vez, pero con async", "otra vez, pero más simple"),
        ("nochmal, aber mit async", "nochmal, aber einfacher erklärt"),
        ("encore une fois, mais avec async", "encore une fois merci"),
        ("再来一次，但是用异步", "能再说一遍吗？"),
        ("もう一度、今度はasyncで", "もう一度説明してくれる？"),
    ],
)
def test_the_same_in_another_way_is_work_and_told_in_another_way_is_talk(order: str, talk: str) -> None:
    assert (mode(order), mode(talk)) == (ACTION, ANSWER)


@pytest.mark.parametrize(
    ("fault", "talk"),
    [
        ("somebody got someone else's invoice", "a user wrote us a lovely email"),
        ("a customer was billed after cancelling", "a client paid on time for once"),
        ("two parallel uploads overwrite each other", "the client was happy"),
        ("the coupon field eats trailing whitespace", "the new office is nice"),
        ("dates come back in UTC", "ideas come and go"),
        ("Deux clients ont reçu la même facture.", "un client nous a remerciés"),
        ("die Treffer kommen in falscher Reihenfolge", "unsere Kunden kommen gern wieder"),
    ],
)
def test_a_fault_told_as_an_event_is_a_report(fault: str, talk: str) -> None:
    assert (mode(fault), mode(talk)) == (ACTION, ANSWER)


@pytest.mark.parametrize(
    ("wanted", "talk"),
    [
        ("our designer wants bigger buttons", "our kids want a puppy"),
        ("our customers want to pay by invoice", "some people want a database for everything"),
        ("product wants the onboarding to be shorter", "my cousin wants a job as a python developer"),
        ("der Vertrieb will eine Übersicht der Bestellungen", "meine Tochter will ein Pferd"),
    ],
)
def test_what_others_want_of_the_work_is_a_wish_and_what_they_want_of_life_is_not(wanted: str, talk: str) -> None:
    assert (mode(wanted), mode(talk)) == (ACTION, ANSWER)


@pytest.mark.parametrize(
    ("order", "talk"),
    [
        ("arréglalo ya", "explícamelo con un ejemplo"),
        ("busca las versiones nuevas y compáralas en una tabla", "compáralas y dime cuál te gusta más"),
        ("spostali in un'altra cartella", "riassumilo in due frasi"),
        ("apague-os", "explique-me com um exemplo"),
        ("supprime-le", "résume-le en deux phrases"),
    ],
)
def test_an_order_with_its_object_in_one_word_is_understood(order: str, talk: str) -> None:
    assert (mode(order), mode(talk)) == (ACTION, ANSWER)


@pytest.mark.parametrize(
    ("general", "at_hand"),
    [
        ("name five sorting algorithms", "name 3 files in this repo that changed most"),
        ("give some examples of bad api design", "give me an example config for nginx"),
        ("list common git mistakes beginners make", "list common dependencies in this project"),
        ("is the repository pattern dead?", "is the repository typed?"),
        ("pros and cons of the repository pattern", "what does the repository do?"),
        ("where do we go from here?", "where do we parse the csv?"),
        ("how many of our colleagues are happy?", "which of our endpoints need auth?"),
    ],
)
def test_what_everybody_knows_is_no_question_about_what_is_at_hand(general: str, at_hand: str) -> None:
    assert (mode(general), mode(at_hand)) == (ANSWER, ACTION)


@pytest.mark.parametrize("text", ["apply black to the whole repository", "rename the id across our entire code base"])
def test_a_change_of_the_whole_code_is_one_in_bulk_and_reading_it_is_not(text: str) -> None:
    found = classify(standard_rule_book(), text)
    assert (found.debate, found.stakes) == (Debate.PLANNING, Stakes.MEDIUM)
    assert classify(standard_rule_book(), "search the entire codebase for the old name").debate is Debate.NONE


@pytest.mark.parametrize(
    ("work", "talk"),
    [
        (
            "would it be possible for you to split the settings page?",
            "would it be possible for you to explain closures?",
        ),
        ("would it be ok for you to rename these columns?", "would it be possible to live on mars?"),
        ("it starts, but the preview stays blank", "my phone stays silent at night"),
        ("the counter remains at 0", "why does the screen stay black in a cinema?"),
        ("sql query: users without a login this year", "query: is postgres better than mysql?"),
        ("regex: every date except holidays", "function: what is that in math?"),
    ],
)
def test_a_request_a_thing_that_stays_as_it_must_not_and_a_piece_of_code_that_is_named_are_work(
    work: str, talk: str
) -> None:
    assert (mode(work), mode(talk)) == (ACTION, ANSWER)
