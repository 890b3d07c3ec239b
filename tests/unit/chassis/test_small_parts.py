"""The small pure parts of the chassis: ids, clocks, codec, traces, crash points."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pointsman.services.chassis.core.clock import DatabaseClock, from_us, ticks_us, to_us
from pointsman.services.chassis.core.codec import chained_digest, from_json, to_json
from pointsman.services.chassis.core.crash import ARMED_BY, CrashPoint
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.ids import jitter, new_id, new_nonce
from pointsman.services.chassis.telemetry.context import (
    new_traceparent,
    transition_span_id,
    transition_traceparent,
    valid_traceparent,
)

ROOT = Path(__file__).resolve().parents[3]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
REACH_TWICE = """
from pointsman.services.chassis.core.crash import CrashPoint, reach
reach(CrashPoint.BATCH_LOADED)
reach(CrashPoint.BATCH_DECIDED)
print("once", flush=True)
reach(CrashPoint.BATCH_DECIDED)
print("twice", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Note:
    """A value to be kept."""

    text: str
    at: datetime
    parts: tuple[int, ...] = ()


def test_ids_sort_by_the_time_of_their_birth_and_never_meet() -> None:
    born = [new_id("run", NOON + timedelta(milliseconds=number)) for number in range(200)]
    assert born == sorted(born)
    assert len({new_id("run", NOON) for _ in range(1000)}) == 1000
    assert all(text.startswith("run_") and len(text) == 30 for text in born)
    assert len({new_nonce() for _ in range(1000)}) == 1000


def test_jitter_stays_between_half_and_all() -> None:
    assert all(0.5 <= jitter(1.0) < 1.0 for _ in range(1000))


def test_a_moment_survives_as_a_number() -> None:
    moment = datetime(2026, 11, 16, 3, 4, 5, 678901, tzinfo=UTC)
    assert from_us(to_us(moment)) == moment


def test_a_database_clock_follows_the_server_and_not_the_machine() -> None:
    clock = DatabaseClock()
    clock.observe(NOON, ticks_us())
    assert timedelta(0) <= clock.now() - NOON < timedelta(seconds=5)
    assert clock.now() <= clock.now()


def test_a_value_survives_as_text() -> None:
    note = Note('quote " and \0 and 長', NOON, (1, 2))
    assert from_json(to_json(note), Note) == note


@pytest.mark.parametrize("text", ["", "{}", '{"text":1,"at":"x"}', "[]", "null", "{"])
def test_text_of_another_shape_is_of_an_unknown_version(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        from_json(text, Note)
    assert (refused.value.reason, refused.value.metadata["kind"]) == (Reason.UNKNOWN_VERSION, "Note")


def test_a_digest_depends_on_every_field_and_on_where_it_ends() -> None:
    digests = {
        chained_digest("", ("a", "b")),
        chained_digest("", ("ab", "")),
        chained_digest("a", ("b",)),
        chained_digest("before", ("a", "b")),
        chained_digest("", ("a", "b", 1)),
        chained_digest("", ("a", "b", "1")),
    }
    assert len(digests) == 6


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"01-{'a' * 32}-{'b' * 16}-01",
        f"00-{'0' * 32}-{'b' * 16}-01",
        f"00-{'A' * 32}-{'b' * 16}-01",
        f"00-{'a' * 32}-{'b' * 16}-01-more",
        f"00-{'a' * 32}-{'b' * 16}-01\n",
        f"00-{'a' * 32}-{'0' * 16}-01",
    ],
)
def test_what_is_no_trace_context_is_none(text: str) -> None:
    assert valid_traceparent(text) == ""


def test_the_span_of_a_transition_can_be_derived_again() -> None:
    outer = new_traceparent("run_1")
    step = transition_traceparent(outer, "run_1", 7)
    assert valid_traceparent(outer) == outer
    assert valid_traceparent(step) == step
    assert step[3:35] == outer[3:35]
    assert step[36:52] == transition_span_id(outer[3:35], "run_1", 7) != transition_span_id(outer[3:35], "run_1", 8)


def test_ids_of_spans_stay_what_they_were_in_earlier_versions() -> None:
    outer = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    assert transition_traceparent(outer, "run_1", 7) == "00-0af7651916cd43dd8448eb211c80319c-8f4527e6193f9031-00"
    assert transition_span_id(outer[3:35], "run_1", 0) == "dce41e522c076509"
    assert new_traceparent("run_1", 5) == "00-c579974e2d98899fa3ddec8452ce11f6-016c91ae97a98713-01"


def test_an_armed_process_dies_at_its_point_and_an_unarmed_one_does_not() -> None:
    armed = _run(REACH_TWICE, "batch_decided:2")
    assert (armed.returncode, armed.stdout) == (-signal.SIGKILL, "once\n")
    assert _run(REACH_TWICE, "").stdout == "once\ntwice\n"


def test_an_unknown_point_cannot_be_armed() -> None:
    assert "no_such_point" in _run("import pointsman.services.chassis.core.crash", "no_such_point").stderr


def test_every_point_is_reached_somewhere_in_the_code() -> None:
    code = "".join(path.read_text() for path in (ROOT / "services" / "chassis").rglob("*.py"))
    assert [point.name for point in CrashPoint if f"reach(CrashPoint.{point.name})" not in code] == []


def _run(code: str, armed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, ARMED_BY: armed},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
