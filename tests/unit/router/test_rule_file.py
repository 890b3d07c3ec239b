"""The rule file and a project's own rules: taken whole, or refused with file, rule and reason."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pointsman.services.chassis.core.config import load
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.router.config import RouterSettings
from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.classification.rule_book import with_own_rules
from pointsman.services.router.domain.enums import Debate, Mode, Stakes
from pointsman.services.router.domain.policy import Policy, SetPolicy, apply, decide
from pointsman.services.router.domain.rule_document import OwnRule, RuleEffect, RuleProblem
from pointsman.services.router.rules import (
    RULE_FILE,
    RuleFileRefused,
    load_own_rules,
    load_rule_book,
    rule_book_with,
    standard_rule_book,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAMPLES = tuple(sorted((Path(__file__).parents[2] / "data").glob("routing_*.jsonl")))


def changed(tmp_path: Path, change: Any) -> Path:
    document = json.loads(RULE_FILE.read_text(encoding="utf-8"))
    change(document)
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda d: d["patterns"]["reference.fence"].update(pattern="(?=x)"), "reference.fence"),
        (lambda d: d["patterns"]["reference.fence"].update(pattern="x*"), "reference.fence"),
        (lambda d: d["english"]["phrases"].update(fault="("), "fault"),
        (lambda d: d["english"]["words"].update(oddity="x"), "english.words"),
        (lambda d: d["english"]["verbs"].pop("tool"), "english.verbs"),
        (lambda d: d["languages"]["zh"].update(script="runes"), "languages.zh.script"),
        (lambda d: d["languages"]["es"].update(do="("), "languages.es.do"),
        (lambda d: d["fast_path"].update(pwd="["), "pwd"),
        (lambda d: d.update(extra=1), "extra"),
        (lambda d: d["debate"]["bulk"].update(wether="x"), "debate.bulk.wether"),
        (lambda d: d["english"].pop("faults"), "english"),
        (lambda d: d.update(version=3), "version"),
    ],
)
def test_a_bad_rule_file_is_refused_with_file_rule_and_reason(tmp_path: Path, change: Any, rule: str) -> None:
    file = changed(tmp_path, change)
    with pytest.raises(RuleFileRefused) as refused:
        load_rule_book(file)
    assert refused.value.file == str(file)
    assert refused.value.rule == rule
    assert refused.value.problem


def test_the_rule_file_that_comes_with_the_router_can_be_taken_whole() -> None:
    assert load_rule_book(RULE_FILE).version == standard_rule_book().version


def test_a_rule_file_that_is_missing_or_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleFileRefused):
        load_rule_book(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    with pytest.raises(RuleFileRefused):
        load_rule_book(tmp_path / "bad.json")


def test_the_decision_names_the_version_of_the_rule_set() -> None:
    assert classify(standard_rule_book(), "hi").rule_set_version == json.loads(RULE_FILE.read_bytes())["version"]


def test_own_rules_are_added_and_named() -> None:
    own = (
        OwnRule("ticket", RuleEffect.REFERENCE, r"\bABC-\d+"),
        OwnRule("zap", RuleEffect.ACTION, "zap"),
        OwnRule("chat", RuleEffect.ANSWER, "^just chatting"),
        OwnRule("prod", RuleEffect.HIGH_STAKES, "customer data"),
        OwnRule("many", RuleEffect.MEDIUM_STAKES, "fleet"),
    )
    book = rule_book_with(own)
    assert classify(book, "what is abc-12 about?").rules[0] == "own.ticket"
    assert classify(book, "zap zap").mode is Mode.ACTION
    assert classify(book, "what does zap mean?").mode is Mode.ANSWER
    assert classify(book, "just chatting: fix the build").mode is Mode.ANSWER
    found = classify(book, "copy the customer data")
    assert (found.debate, found.stakes) == (Debate.PLANNING, Stakes.HIGH)
    assert classify(book, "restart the fleet").stakes is Stakes.MEDIUM
    assert classify(standard_rule_book(), "what is abc-12 about?").mode is Mode.ANSWER


def test_the_version_changes_with_the_own_rules_and_only_with_them() -> None:
    one = with_own_rules(standard_rule_book(), (OwnRule("a", RuleEffect.ACTION, "a+b"),))
    two = with_own_rules(standard_rule_book(), (OwnRule("a", RuleEffect.ACTION, "a+c"),))
    again = with_own_rules(standard_rule_book(), (OwnRule("a", RuleEffect.ACTION, "a+b", "described"),))
    assert one.version == again.version != two.version
    assert with_own_rules(one, ()).version == standard_rule_book().version


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "x*", ""])
def test_an_own_rule_that_is_no_linear_expression_is_refused(pattern: str) -> None:
    with pytest.raises(RuleProblem):
        with_own_rules(standard_rule_book(), (OwnRule("a", RuleEffect.ACTION, pattern),))
    with pytest.raises(Refusal) as refused:
        decide(None, SetPolicy("policy:p", True, (OwnRule("a", RuleEffect.ACTION, pattern),), None), NOW)
    assert refused.value.reason is Reason.INVALID_RULE
    assert refused.value.metadata["rule"] == "a"


def test_two_own_rules_of_one_name_are_refused() -> None:
    twice = (OwnRule("a", RuleEffect.ACTION, "x"), OwnRule("a", RuleEffect.ACTION, "y"))
    with pytest.raises(RuleProblem):
        with_own_rules(standard_rule_book(), twice)
    with pytest.raises(Refusal):
        decide(None, SetPolicy("policy:p", True, twice, None), NOW)


def test_a_policy_counts_its_revisions_and_refuses_a_stale_change() -> None:
    state: Policy | None = None
    for revision in (1, 2):
        decision = decide(state, SetPolicy("policy:p", False, (), revision - 1), NOW)
        state = apply(state, decision.events[0], NOW)
        assert state == decision.answer
        assert state.revision == revision
    with pytest.raises(Refusal) as refused:
        decide(state, SetPolicy("policy:p", True, (), 1), NOW)
    assert refused.value.reason is Reason.LOST_RACE


def test_own_rules_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text('[{"id": "a", "effect": "reference", "pattern": "x"}]', encoding="utf-8")
    assert load_own_rules(file) == (OwnRule("a", RuleEffect.REFERENCE, "x"),)
    file.write_text('[{"id": "a", "effect": "sing", "pattern": "x"}]', encoding="utf-8")
    with pytest.raises(RuleFileRefused):
        load_own_rules(file)


@pytest.mark.parametrize("name", ["POINTSMAN_ROUTER_HARD_ROUTING", "ENABLE_HARD_ROUTING"])
def test_hard_routing_has_the_name_of_the_specification_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(RouterSettings).hard_routing
    monkeypatch.setenv(name, "false")
    assert not load(RouterSettings).hard_routing


def test_every_expression_is_found_by_the_pass_over_all_of_them() -> None:
    shapes = standard_rule_book().shapes.patterns
    for text in (json.loads(line)["text"].lower() for file in SAMPLES for line in file.read_text("utf-8").splitlines()):
        alone = {name for name, expression in shapes.expressions.items() if expression.search(text) is not None}
        assert set(shapes.matching(text)) == alone, text


def test_a_keyword_in_several_forms_is_named_by_the_first_that_stands_in_the_text() -> None:
    found = classify(standard_rule_book(), "update the parser, then tell me what updating and updates cost")
    assert [trigger.name for trigger in found.triggers if trigger.rule == "keyword.operation"] == ["update"]
    found = classify(standard_rule_book(), "stop the job that is running, then run it again")
    assert [trigger.name for trigger in found.triggers] == ["stop", "running"]
