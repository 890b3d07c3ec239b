"""The pages about the router print the rules that hold, and the log and prompts have their form."""

from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.classification.rule_book import with_own_rules
from pointsman.services.router.domain.decision_record import DecisionContext, RoutingDecision, make_routing_decision
from pointsman.services.router.domain.enums import Debate, Mode, Stakes
from pointsman.services.router.domain.rule_docs import (
    MODE_ROWS,
    OWN_EXAMPLE,
    mode_prompt,
    soft_router_prompt,
    tables,
    with_tables,
)
from pointsman.services.router.formats.daily_log import log_entry
from pointsman.services.router.rules import standard_rule_book

PAGES = Path(__file__).parents[3] / "docs" / "concepts"
AT = datetime(2026, 1, 1, 9, 5, tzinfo=UTC)


@pytest.mark.parametrize("name", ["router.md", "thinking.md"])
def test_the_tables_in_the_documentation_are_current(name: str) -> None:
    text = (PAGES / name).read_text(encoding="utf-8")
    assert with_tables(text, standard_rule_book().document) == text


@pytest.mark.parametrize("row", MODE_ROWS, ids=lambda row: f"row {row[0]}")
def test_every_row_of_the_mode_table_decides_its_example(row: tuple[str, str, Mode | str, str, str]) -> None:
    _, _, mode, rule, example = row
    found = classify(with_own_rules(standard_rule_book(), (OWN_EXAMPLE,)), example)
    assert fnmatch(found.rules[0], rule)
    assert mode in (found.mode, "as it says")


def test_every_table_is_printed_somewhere() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (PAGES / "router.md", PAGES / "thinking.md"))
    assert all(f"<!-- table: {name} -->" in text for name in tables(standard_rule_book().document))


def test_the_soft_router_prompt_has_the_rules_and_each_mode_has_a_prompt() -> None:
    prompt = soft_router_prompt(standard_rule_book().document)
    for word in ("ANSWER", "ACTION", "STRONG", "WEAK", "fix, debug, implement", "destructive", "user_override"):
        assert word in prompt
    assert mode_prompt(Mode.ANSWER) != mode_prompt(Mode.ACTION)


def entry(text: str) -> str:
    context = DecisionContext("d", "", "", hard_routing=True)
    return log_entry(make_routing_decision(text, classify(standard_rule_book(), text), context), AT)


def test_one_trigger_is_told_in_the_singular() -> None:
    assert entry("search for examples") == (
        '09:05 ROUTE "search for examples" → ACTION\n'
        "  Triggers: [search]\n  Confidence: WEAK (1 trigger)\n  Routed to: Swarm Orchestrator\n"
    )


def overridden(text: str, mode: Mode) -> RoutingDecision:
    context = DecisionContext("d", "", "", hard_routing=True, mode_override=mode)
    book = standard_rule_book()
    return make_routing_decision(text, classify(book, text), context, classify(book, text, as_action=True))


def test_an_override_is_told_beside_what_the_rules_decided() -> None:
    assert log_entry(overridden("search for examples", Mode.ANSWER), AT) == (
        '09:05 ROUTE "search for examples" → ACTION\n'
        "  Triggers: [search]\n  Confidence: WEAK (1 trigger)\n  Overridden: ANSWER\n  Routed to: Direct Response\n"
    )
    assert log_entry(overridden("should I drop the users table?", Mode.ACTION), AT) == (
        '09:05 ROUTE "should I drop the users table?" → ANSWER\n'
        "  Triggers: []\n  Pattern: Question + no external refs\n"
        "  Overridden: ACTION\n  Routed to: Swarm Orchestrator\n"
    )


@pytest.mark.parametrize(
    "text",
    ["should I drop the users table?", "¿debería borrar la tabla de usuarios?", "is it ok to rotate the api keys?"],
)
def test_talk_that_is_overridden_to_action_is_debated_like_an_order(text: str) -> None:
    made = overridden(text, Mode.ACTION)
    assert (made.mode, made.debate, made.stakes, made.bypass) == (Mode.ACTION, Debate.PLANNING, Stakes.HIGH, None)
    assert made.rules[0].endswith("question")
    assert [reason.rule for reason in made.reasons] == list(made.rules[1:])


def test_talk_without_anything_at_stake_needs_no_debate_when_it_is_overridden() -> None:
    made = overridden("what is a monad?", Mode.ACTION)
    assert (made.debate, made.stakes, made.bypass) == (Debate.NONE, Stakes.NONE, None)


def test_a_trivial_command_is_routed_to_the_tool_specialist_in_the_log() -> None:
    assert entry("pwd").endswith("  Routed to: Tool Specialist\n")


def test_a_message_of_several_lines_is_one_line_in_the_log_and_cut() -> None:
    told = entry("thanks\n\na lot " + "x" * 500)
    assert told.startswith('09:05 ROUTE "thanks a lot xxx')
    assert len(told) < 400
