"""Packed texts: whatever is packed comes back as it was, and what cannot be read says so."""

import hashlib
from pathlib import Path

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage import packing
from pointsman.services.chassis.storage.packing import (
    DICTIONARY,
    pack,
    pack_digest,
    pack_traceparent,
    unpack,
    unpack_digest,
    unpack_traceparent,
)

DICTIONARIES = {1: "1da8cfe30787ed4f3aae6275ebd2eff8947512b8c2da2fc96c9e00e51817f66d"}
"""What stores were written with must be there, unchanged, as long as there are such stores."""
STEP = '{"assignment_id":"run_1.a2","end":"DONE","agent_id":"coder","error":"","restarts":0,"principal":"p","granted":"CODE"}'
TRACE = "00-ddddb9a9549f7991156cd9bb37c077c3-97e90cc855776a4d-01"


@pytest.mark.parametrize(
    "text", ["", "{}", STEP, STEP * 200, "ß€🚂" * 40, "\x00" * 100, bytes(range(128)).decode() * 3], ids=len
)
def test_a_text_comes_back_as_it_was(text: str) -> None:
    assert unpack(pack(text)) == text


def test_a_usual_text_becomes_less_than_half_as_long_and_is_packed_alike_every_time() -> None:
    packed = pack(STEP)
    assert isinstance(packed, bytes)
    assert len(packed) < len(STEP) / 2
    assert packed == pack(STEP)


@pytest.mark.parametrize("text", ["ab" * 32, "", "AB" * 32, "abc", "engine:run_1:6:0", "ab cd"])
def test_a_digest_comes_back_as_it_was(text: str) -> None:
    assert unpack_digest(pack_digest(text)) == text


@pytest.mark.parametrize(
    "text", [TRACE, "", TRACE.upper(), TRACE.replace("-", ""), TRACE + "-ab", "-" + TRACE[1:], "--"]
)
def test_a_trace_context_comes_back_as_it_was(text: str) -> None:
    assert unpack_traceparent(pack_traceparent(text)) == text


def test_digests_and_trace_contexts_take_half_the_bytes() -> None:
    assert [len(pack_digest("ab" * 32)), len(pack_traceparent(TRACE))] == [32, 26]


def test_damaged_bytes_read_as_something_that_nothing_fits() -> None:
    packed = pack(STEP)
    assert isinstance(packed, bytes)
    for place in range(1, len(packed) - 1):  # the last byte may be padding
        damaged = packed[:place] + bytes((packed[place] ^ 0xFF,)) + packed[place + 1 :]
        assert unpack(damaged) != STEP


def test_a_text_of_a_newer_version_is_refused() -> None:
    with pytest.raises(Refusal, match="upgrade this server") as refused:
        unpack(bytes((DICTIONARY + 1,)) + b"anything")
    assert refused.value.reason is Reason.UNKNOWN_VERSION


def test_a_dictionary_that_stores_were_written_with_never_changes() -> None:
    folder = Path(packing.__file__).parent / "dictionaries"
    found = {int(file.stem): hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.txt")}
    assert found == DICTIONARIES
    assert max(found) == DICTIONARY
