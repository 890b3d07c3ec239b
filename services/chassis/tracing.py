"""The spans of calls and commits, each below the transition that it belongs to; noted only where spans are exported."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from secrets import token_hex
from typing import NamedTuple, Protocol

from pointsman.otlp.noted import Kind, Noted, Sort, now_ns
from pointsman.services.chassis.telemetry import is_traced, place_now, step_traceparent

MAX_LINKS = 31
FAULTS = frozenset({"INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "UNKNOWN"})
"""How a server's own failures end; that a caller was refused is no failure of the server's."""


class Recorder(Protocol):
    """Keeps spans and sends them, without making anybody wait."""

    def has_room(self) -> bool:
        """Whether it keeps one more; the one that is not noted for that counts as dropped."""

    def note(self, noted: Noted) -> None:
        """Keep it for the next sending."""

    def close(self) -> None:
        """Send what is there and stop."""


class Commit(NamedTuple):
    """One joined commit, as its span tells of it."""

    store: str
    system: str
    commands: int
    transitions: int
    begin_us: int
    end_us: int


class Tracing:
    """The process's notes of calls and commits; while `is_on` is false nobody calls them."""

    def __init__(self) -> None:
        self.is_on = False
        self._recorder: Recorder | None = None
        self._users = 0
        self._prefix, self._numbers = token_hex(4), count(1)

    def start(self, new_recorder: Callable[[], Recorder]) -> None:
        """Take notes from now on, with the recorder that all services of the process share."""
        self._users += 1
        if self._recorder is None:
            self._recorder, self.is_on = new_recorder(), True

    def stop(self) -> None:
        """Send what was noted, once the last service has stopped."""
        if self._recorder is None:
            return
        self._users -= 1
        if self._users == 0:
            recorder, self._recorder, self.is_on = self._recorder, None, False
            recorder.close()

    def _new_span_id(self) -> str:
        """An id that no other process has, without asking the system for chance each time."""
        return f"{self._prefix}{next(self._numbers) & 0xFFFFFFFF:08x}"

    def has_room(self) -> bool:
        """Whether one more span is kept just now: what is dropped need not be put together first."""
        return self._recorder is not None and self._recorder.has_room()

    def call_served(self, method: str, code: str, seconds: float) -> None:
        """A call was answered here: below what its caller named, else below the transition that it led to."""
        if is_traced() and self.has_room():
            self._call(place_now(), _service_of(method), method, (code, seconds), is_server=True)

    def call_made(self, traceparent: str, service: str, method: str, ended: tuple[str, float]) -> None:
        """A call was made from here: below the transition that asked for it."""
        if traceparent and self.has_room():
            self._call(traceparent, service, method, ended, is_server=False)

    def _call(self, traceparent: str, service: str, method: str, ended: tuple[str, float], *, is_server: bool) -> None:
        """Calls that belong to no trace have no span; pointsman_rpc_seconds counts them all."""
        assert self._recorder is not None
        code, seconds = ended
        end_ns = now_ns()
        sort = _call_sort(service, method, code, is_server)
        begin_ns = end_ns - int(seconds * 1e9)
        self._recorder.note(Noted(sort, traceparent, self._new_span_id(), begin_ns, end_ns))

    def committed(self, commit: Commit, steps: Sequence[tuple[str, str, int]]) -> None:
        """A batch is durable: below the first transition it wrote, linked with those of the other entities."""
        if self._recorder is None or not steps:
            return
        first, *others = [step_traceparent(*step) for step in steps[: MAX_LINKS + 1]]
        sizes = (
            ("db.operation.batch.size", commit.commands),
            ("pointsman.commit.transitions", commit.transitions),
        )
        sort, times_ns = _commit_sort(commit.store, commit.system), (commit.begin_us * 1000, commit.end_us * 1000)
        self._recorder.note(Noted(sort, first, self._new_span_id(), *times_ns, sizes, tuple(others)))


@lru_cache(maxsize=1024)
def _call_sort(service: str, method: str, code: str, is_server: bool) -> Sort:
    name = method.removeprefix("/")
    attributes = [("rpc.system.name", "grpc"), ("rpc.method", name), ("rpc.response.status_code", code)]
    failed = code in FAULTS if is_server else code != "OK"
    if failed:
        attributes.append(("error.type", code))
    return Sort(service, name, Kind.SERVER if is_server else Kind.CLIENT, tuple(attributes), failed)


@lru_cache(maxsize=64)
def _commit_sort(store: str, system: str) -> Sort:
    attributes = (("db.system.name", system), ("db.namespace", store), ("db.operation.name", "COMMIT"))
    return Sort(store, f"COMMIT {store}", Kind.CLIENT, attributes)


def _service_of(method: str) -> str:
    """The context of `/pointsman.api.<context>.v1.…`, or whatever stands there."""
    return method.split(".")[2] if method.count(".") > 2 else "service"


tracing = Tracing()
