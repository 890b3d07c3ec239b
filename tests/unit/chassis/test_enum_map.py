"""Enums of a domain on the wire."""

from enum import StrEnum

import pytest

from pointsman.api.router.v1 import outcome_pb2, thinking_pb2
from pointsman.services.chassis.rpc.enum_map import EnumMap


class FileState(StrEnum):
    """As the router has it: a file that is absent has no name on the wire."""

    ABSENT = "absent"
    UNREADABLE = "unreadable"
    PARSED = "parsed"


class Unknown(StrEnum):
    """An enum with a member that the wire does not know."""

    SUCCESS = "success"
    LUCK = "luck"


STATES = EnumMap(thinking_pb2.ArtifactState, FileState, unspecified=FileState.ABSENT)


def test_every_member_goes_to_the_wire_and_comes_back() -> None:
    for member in (FileState.UNREADABLE, FileState.PARSED):
        number = STATES.to_wire(member)
        assert thinking_pb2.ArtifactState.Name(number) == f"ARTIFACT_STATE_{member.name}"
        assert STATES.to_domain(number) is STATES.required(number) is member


def test_unspecified_stands_for_none_and_for_the_member_without_a_name() -> None:
    assert STATES.to_wire(None) == STATES.to_wire(FileState.ABSENT) == thinking_pb2.ARTIFACT_STATE_UNSPECIFIED
    assert STATES.to_domain(0) is None
    assert STATES.or_default(0, FileState.ABSENT) is FileState.ABSENT
    assert STATES.all_to_domain([2, 0, 1]) == (FileState.PARSED, FileState.UNREADABLE)
    with pytest.raises(KeyError):
        STATES.required(0)


def test_a_member_that_the_wire_does_not_know_is_found_when_the_service_starts() -> None:
    with pytest.raises(ValueError, match="OUTCOME_LUCK"):
        EnumMap(outcome_pb2.Outcome, Unknown)
