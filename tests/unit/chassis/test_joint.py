"""Which commands of a batch are decided as one: enumerated, and as a property over random batches."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.machine import Joint
from pointsman.services.chassis.engine.joint import answers_to, joined, parties
from pointsman.services.chassis.engine.ledger import Submission
from pointsman.services.chassis.engine.outbox import FiredTimer


@dataclass(frozen=True, slots=True)
class Word:
    """A command about something."""

    entity_id: str
    subject: str


JOINT = Joint(lambda word: word.subject, tuple, lambda answer: answer.split())
TIMER = FiredTimer("a", "wake", 1, "null", "local", "", 1)


def said(text: str) -> Submission:
    """A submission: entity, subject ('-' for none), request id, and after that perhaps a project, or '!' for a timer."""
    entity_id, subject, request_id, rest = text[0], text[1], text[2], text[3:]
    project = rest.replace("!", "") or "local"
    word = Word(entity_id, subject.replace("-", ""))
    return Submission(word, Caller("local", project, request_id=request_id), TIMER if "!" in rest else None)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ("ax1 ay2 az3", [[0, 1, 2]]),
        ("ax1 bx2 ay3 by4", [[0, 2], [1, 3]]),
        ("ax1 a-2 ay3", [[0], [1], [2]]),
        ("ax1 b-2 ay3", [[0, 2], [1]]),
        ("ax1 ax2 ay3", [[0], [1, 2]]),
        ("ax1 ay1 az2", [[0], [1, 2]]),
        ("ax1 ay2p az3", [[0, 2], [1]]),
        ("ax1 ay2! az3", [[0], [1], [2]]),
        ("a-1 a-2", [[0], [1]]),
        ("ax1", [[0]]),
    ],
)
def test_those_about_other_things_are_joined_as_far_as_nothing_stands_between(batch: str, expected: object) -> None:
    items = [said(text) for text in batch.split()]
    assert [[items.index(item) for item in party] for party in parties(JOINT, items)] == expected


def test_nobody_is_joined_where_the_machine_does_not_say_how() -> None:
    items = [said("ax1"), said("ay2")]
    assert list(map(list, parties(None, items))) == [[items[0]], [items[1]]]


@given(st.lists(st.tuples(*(st.sampled_from(letters) for letters in ("ab", "xyz-", "12345", "pq")))))
def test_each_is_in_one_party_and_no_entity_s_commands_change_their_order(batch: list[tuple[str, ...]]) -> None:
    items = [said("".join(one)) for one in batch]
    found = parties(JOINT, items)
    order = [item for party in found for item in party]
    assert sorted(map(id, order)) == sorted(map(id, items))
    for entity_id in "ab":
        for project in "pq":
            mine = [i for i in items if (i.command.entity_id, i.caller.project) == (entity_id, project)]
            assert [i for i in order if any(i is one for one in mine)] == mine
    for party in found:
        assert len({item.caller.request_id for item in party}) == len(party)
        assert len(party) == 1 or all(getattr(item.command, "subject", "") for item in party)


def test_one_alone_is_asked_and_answered_as_it_is() -> None:
    alone = [said("ax1")]
    assert joined(JOINT, alone) == alone[0].command
    assert answers_to(JOINT, alone, "yes no") == ("yes no",)


def test_several_are_asked_and_answered_as_one() -> None:
    both = [said("ax1"), said("ay2")]
    assert joined(JOINT, both) == tuple(item.command for item in both)
    assert answers_to(JOINT, both, "yes no") == ["yes", "no"]
