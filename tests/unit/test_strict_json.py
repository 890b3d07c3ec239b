"""All readers of foreign JSON share one reader: it accepts one meaning only, in time linear in the text."""

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from pointsman._shared.strict_json import JsonError, decode
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.gateway.wire import read_json
from pointsman.services.pipeline.formats.state_file_fields import whole_file
from pointsman.services.workflow.formats.workflow_state_reader import read_state
from pointsman.worker.json_files import InvalidFile, strict_json

Reader = Callable[[bytes], object]
READERS: dict[str, Reader] = {
    "gateway": lambda text: read_json(text, "m"),
    "worker": lambda text: strict_json(text, "claims.json"),
    "pipeline": lambda text: whole_file(text.decode()),
    "workflow": lambda text: read_state(text.decode(), "p", datetime(2026, 1, 1, tzinfo=UTC)),
}
HOSTILE: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "the last key repeated": (
        4_000,
        lambda size: b"{" + b"".join(b'"k%d":0,' % number for number in range(size)) + b'"x":1,"x":2}',
    ),
    "a long name over a long list": (
        64_000,
        lambda size: b'{"' + b"n" * size + b'":[' + b"0," * size + b'"\\u0000"]}',
    ),
}


@pytest.mark.parametrize("shape", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_hostile_json_of_four_times_the_size_takes_about_four_times_the_time(reader: str, shape: str) -> None:
    size, text = HOSTILE[shape]
    texts = [text(size * factor) for factor in (1, 4)]
    seen = []
    for _ in range(6):  # a busy host slows down single tries; a quadratic reader takes 16 times as long in each of them
        small, large = (_cpu_seconds(READERS[reader], one) for one in texts)
        seen.append((small, large))
        if large < 8 * small + 0.005:
            return
    pytest.fail(f"not linear in any of six tries: {seen}")


def _cpu_seconds(reader: Reader, text: bytes) -> float:
    """The best of five, in CPU time of this thread: other processes on the machine do not count."""
    return min(_cpu_seconds_once(reader, text) for _ in range(5))


def _cpu_seconds_once(reader: Reader, text: bytes) -> float:
    begun = time.thread_time()
    with contextlib.suppress(Refusal, InvalidFile):
        reader(text)
    return time.thread_time() - begun


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": 12345678901234567890}',
        '{"a": "\\u0000"}', '{"a": ["\\ud800"]}', '{"\\ud800": 1}', "{", "", '{"a": "\0"}',
        '{"a": ' + "[" * 70 + "]" * 70 + "}", '{"a": ' + "[" * 100_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_could_be_read_in_two_ways(reader: str, text: str) -> None:
    with pytest.raises((Refusal, InvalidFile)) as caught:
        READERS[reader](text.encode())
    str(caught.value).encode()


def test_a_problem_names_its_place() -> None:
    with pytest.raises(JsonError, match=r"^a\.b\[1\]\.c must not contain NUL"):
        decode('{"a": {"b": [0, {"c": "\\u0000"}]}}')
    with pytest.raises(JsonError, match=r"^x stands twice in one object$"):
        decode('{"a": {"w": 0, "x": 1, "x": 2}}')
