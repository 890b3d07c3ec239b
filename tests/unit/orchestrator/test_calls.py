"""The registry of peer calls is whole: what is registered can be made, and what is named is registered."""

from dataclasses import fields

from pointsman.services.orchestrator.domain.calls import CALLS
from pointsman.services.orchestrator.domain.enums import Call
from pointsman.services.orchestrator.loops import LOCAL
from pointsman.services.orchestrator.peers import REMOTE


def test_each_call_is_registered_once() -> None:
    assert set(CALLS) == set(Call)


def test_each_call_is_made_by_a_peer_or_by_this_service() -> None:
    assert set(REMOTE).isdisjoint(LOCAL)
    assert {*REMOTE, *LOCAL} == set(Call)


def test_each_request_names_the_call_that_its_answer_comes_back_to() -> None:
    for call in CALLS.values():
        assert "call_id" in {field.name for field in fields(call.request)}
