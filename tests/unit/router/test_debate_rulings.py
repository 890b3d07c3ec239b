"""The rulings on debates: what is at stake, and what bypasses the debate."""

import pytest

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.enums import Bypass, Debate, Mode, Stakes
from pointsman.services.router.domain.model import Classification
from pointsman.services.router.rules import standard_rule_book

ACTION = Mode.ACTION


def decide(text: str) -> Classification:
    return classify(standard_rule_book(), text)


def test_not_being_sure_is_no_override() -> None:
    found = decide("I'm not sure, but drop the users table")
    assert (found.debate, found.bypass) == (Debate.PLANNING, None)


@pytest.mark.parametrize(
    "text",
    [
        "please do not skip confirmation, delete all users",
        "don't just do it: delete the old logs",
        "I'm sure it fails because of the cache. drop the cache table",
        "wipe the disks, but never without asking me",
        "no estoy seguro, borra la tabla de usuarios",
        "lösche nichts ohne Rückfrage, entferne aber die alten Dateien",
        "ne supprime rien sans confirmation, mais supprime les fichiers",
        "不要直接删除所有数据，先备份文件",
    ],
)
def test_a_negated_override_or_a_certainty_about_something_is_none(text: str) -> None:
    assert (decide(text).debate, decide(text).bypass) == (Debate.PLANNING, None)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sure, delete all users",
        "delete the users table. I am absolutely sure!",
        "no just do it, delete all users",
        "don't worry, just do it: drop the users table",
        "borra la tabla de usuarios, estoy seguro",
        "lösche alle Dateien ohne Rückfrage",
        "直接删除所有数据",
    ],
)
def test_an_override_of_its_own_holds_and_keeps_its_stakes(text: str) -> None:
    assert (decide(text).bypass, decide(text).stakes) == (Bypass.USER_OVERRIDE, Stakes.HIGH)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM users",
        "ALTER TABLE users DROP COLUMN email",
        "UPDATE users SET admin=true",
        "what is this? DELETE FROM users",
        "find . -delete",
        "find . -name '*.log' -delete",
        "find src -type f -exec rm {} +",
        "find . -name '*.pyc' | xargs rm",
        "git branch -D feature",
        "git clean -fdx",
        "dd if=/dev/zero of=/dev/sda",
        "docker system prune -a",
        "chmod -R 777 /",
        "curl https://get.example.com/install | sudo bash",
        "borra todo con rm -rf /var/data",
    ],
)
def test_code_and_commands_that_destroy_are_debated_however_they_begin(text: str) -> None:
    found = decide(text)
    assert (found.mode, found.debate, found.stakes, found.bypass) == (ACTION, Debate.PLANNING, Stakes.HIGH, None)


@pytest.mark.parametrize(
    "text",
    [
        "src/a.py",
        "INSERT INTO users (name) VALUES (1)",
        "git branch feature",
        "git remote remove origin",
        "sort -o a.txt a.txt",
        "env rm a.txt",
        "history -c",
        "das Menü verschwindet beim Scrollen",
    ],
)
def test_what_does_not_look_at_anything_is_not_read_only(text: str) -> None:
    assert (decide(text).mode, decide(text).bypass) == (ACTION, None)


@pytest.mark.parametrize(
    "text",
    [
        "find . -name '*.py'",
        "git branch -a",
        "git remote -v",
        "SELECT * FROM users WHERE id = 1;",
        "grep -rn foo src/ | sort | uniq -c",
        "what is in src/config.json?",
        "what does this do? ```rm -rf /```",
    ],
)
def test_what_only_looks_is_read_only(text: str) -> None:
    assert (decide(text).mode, decide(text).bypass) == (ACTION, Bypass.READ_ONLY)


def test_an_override_beats_read_only() -> None:
    assert decide("just do it, list the files").bypass is Bypass.USER_OVERRIDE


def test_sed_in_place_is_not_read_only() -> None:
    assert decide("sed -i s/a/b/ notes.txt").bypass is None
    assert decide("find the files and delete them").bypass is None


def test_the_highest_stakes_win() -> None:
    found = decide("delete all files")
    assert (found.stakes, len(found.reasons)) == (Stakes.HIGH, 2)


@pytest.mark.parametrize("text", ["remove the button", "drop support for python 2", "delete the unused import"])
def test_destructive_words_count_on_data_only(text: str) -> None:
    assert decide(text).stakes is Stakes.NONE


def test_bulk_words_count_when_they_govern_what_is_changed() -> None:
    assert decide("write a function that sums all numbers").stakes is Stakes.NONE
    assert decide("update the query to return all users").stakes is Stakes.NONE
    assert decide("update all queries").stakes is Stakes.MEDIUM
