"""The spans of calls and commits, each below the transition that it belongs to; noted only where spans are exported."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from secrets import randbits
from typing import NamedTuple, Protocol, TypeVarTuple

from pointsman.otlp.noted import Kind, Noted, Sort, now_ns, span_id_in, trace_id_in
from pointsman.services.chassis.telemetry import Transition, told_now, transition_id

MAX_LINKS = 31
FAULTS = frozenset({"INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "UNKNOWN"})
"""How a server's own failures end; that a caller was refused is no failure of the server's."""

Told = TypeVarTuple("Told")


class Recorder(Protocol):
    """Keeps spans and sends them, without making anybody wait."""

    def has_room(self) -> bool:
        """Whether it keeps one more; the one that is not noted for that counts as dropped."""

    def note(self, tell: Callable[[*Told], Noted], *told: *Told) -> None:
        """Keep what a span is told from; it is told when it is sent."""

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
        self._numbers = count(1 + randbits(63))

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

    def has_room(self) -> bool:
        """Whether one more span is kept just now: what is dropped need not be put together first."""
        return self._recorder is not None and self._recorder.has_room()

    def call_served(self, method: str, code: str, seconds: float) -> None:
        """A call was answered here: below what its caller named, else below the transition that it led to.

        Calls that belong to no trace have no span; pointsman_rpc_seconds counts them all.
        """
        place = told_now()
        if place and self._recorder is not None:
            self._recorder.note(self._served, place, method, code, now_ns(), seconds)

    def call_made(self, traceparent: str, service: str, method: str, ended: tuple[str, float]) -> None:
        """A call was made from here: below the transition that asked for it."""
        if traceparent and self._recorder is not None:
            self._recorder.note(self._made, traceparent, service, method, now_ns(), ended)

    def committed(self, commit: Commit, steps: Sequence[Transition]) -> None:
        """A batch is durable: below the first transition it wrote, linked with those of the other entities."""
        if steps and self._recorder is not None:
            self._recorder.note(self._commit, commit, steps[: MAX_LINKS + 1])

    def _served(self, place: str | Transition, method: str, code: str, end_ns: int, seconds: float) -> Noted:
        return self._call(_call_sort(_service_of(method), method, code, is_server=True), place, end_ns, seconds)

    def _made(self, traceparent: str, service: str, method: str, end_ns: int, ended: tuple[str, float]) -> Noted:
        code, seconds = ended
        return self._call(_call_sort(service, method, code, is_server=False), traceparent, end_ns, seconds)

    def _call(self, sort: Sort, place: str | Transition, end_ns: int, seconds: float) -> Noted:
        if isinstance(place, str):
            traceparent, parent_id = place, span_id_in(place)
        else:
            traceparent, parent_id = place[0], transition_id(*place)
        return Noted(sort, traceparent, parent_id, self._new_span_id(), end_ns - int(seconds * 1e9), end_ns)

    def _commit(self, commit: Commit, steps: Sequence[Transition]) -> Noted:
        first, *others = steps
        return Noted(
            _commit_sort(commit.store, commit.system),
            first[0],
            transition_id(*first),
            self._new_span_id(),
            commit.begin_us * 1000,
            commit.end_us * 1000,
            (
                ("db.operation.batch.size", commit.commands),
                ("pointsman.commit.transitions", commit.transitions),
            ),
            [(trace_id_in(one[0]), transition_id(*one)) for one in others],
        )

    def _new_span_id(self) -> bytes:
        """An id that no other process has, without asking the system for chance each time."""
        return next(self._numbers).to_bytes(8, "big")


@lru_cache(maxsize=1024)
def _call_sort(service: str, method: str, code: str, *, is_server: bool) -> Sort:
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


@lru_cache(maxsize=1024)
def _service_of(method: str) -> str:
    """The context of `/pointsman.api.<context>.v1.…`, or whatever stands there."""
    return method.split(".")[2] if method.count(".") > 2 else "service"


tracing = Tracing()
