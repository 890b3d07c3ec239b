"""Records of calls and commits, from which their spans are made; taken only while spans are exported."""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from pointsman._shared.otlp.queue import Queue
from pointsman._shared.otlp.span_record import Kind, SpanRecord, SpanTemplate, now_ns, span_id_in, trace_id_in
from pointsman.services.chassis.telemetry.context import Transition, current_parent, transition_id

MAX_LINKS = 31
FAULTS = frozenset({"INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "UNKNOWN"})
"""How a server's own failures end; that a caller was refused is no failure of the server's."""


class ServerCall(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A call was answered here."""

    place: str | Transition
    """Its parent: the span that its caller named, or a transition; with seq 0, the call itself is that span."""
    method: str
    code: str
    end_ns: int
    seconds: float

    def to_span(self, span_id: bytes) -> SpanRecord:
        """Its span."""
        sort = _call_template(_service_of(self.method), self.method, self.code, is_server=True)
        if isinstance(self.place, str):
            traceparent, parent_id = self.place, span_id_in(self.place)
        else:
            traceparent, parent_id = self.place[0], transition_id(*self.place)
            if self.place[2] == 0:
                parent_id, span_id = b"", parent_id
        return SpanRecord(sort, traceparent, parent_id, span_id, self.end_ns - int(self.seconds * 1e9), self.end_ns)


class ClientCall(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A call was made from here."""

    traceparent: str
    service: str
    method: str
    code: str
    seconds: float
    end_ns: int

    def to_span(self, span_id: bytes) -> SpanRecord:
        """Its span."""
        sort = _call_template(self.service, self.method, self.code, is_server=False)
        begin_ns = self.end_ns - int(self.seconds * 1e9)
        return SpanRecord(sort, self.traceparent, span_id_in(self.traceparent), span_id, begin_ns, self.end_ns)


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One joined commit, as its span tells of it."""

    store: str
    system: str
    commands: int
    transitions: int
    begin_us: int
    end_us: int


class CommitRecord(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A batch is durable."""

    commit: Commit
    steps: Sequence[Transition]
    """A transition of each entity that it moved, as many as its span is linked with."""

    def to_span(self, span_id: bytes) -> SpanRecord:
        """Its span, below the first of its transitions and linked with the others."""
        commit, (first, *others) = self.commit, self.steps
        return SpanRecord(
            _commit_template(commit.store, commit.system),
            first[0],
            transition_id(*first),
            span_id,
            commit.begin_us * 1000,
            commit.end_us * 1000,
            (
                ("db.operation.batch.size", commit.commands),
                ("pointsman.commit.transitions", commit.transitions),
            ),
            [(trace_id_in(one[0]), transition_id(*one)) for one in others],
        )


CallRecord = ServerCall | ClientCall | CommitRecord


@lru_cache(maxsize=1024)
def _call_template(service: str, method: str, code: str, *, is_server: bool) -> SpanTemplate:
    name = method.removeprefix("/")
    attributes = [("rpc.system.name", "grpc"), ("rpc.method", name), ("rpc.response.status_code", code)]
    failed = code in FAULTS if is_server else code != "OK"
    if failed:
        attributes.append(("error.type", code))
    return SpanTemplate(service, name, Kind.SERVER if is_server else Kind.CLIENT, tuple(attributes), failed)


@lru_cache(maxsize=64)
def _commit_template(store: str, system: str) -> SpanTemplate:
    attributes = (("db.system.name", system), ("db.namespace", store), ("db.operation.name", "COMMIT"))
    return SpanTemplate(store, f"COMMIT {store}", Kind.CLIENT, attributes)


@lru_cache(maxsize=1024)
def _service_of(method: str) -> str:
    """The context of `/pointsman.api.<context>.v1.…`, or whatever stands there."""
    return method.split(".")[2] if method.count(".") > 2 else "service"


class CallRecorder:
    """The process's notes of calls and commits; while `is_on` is false nobody calls them."""

    def __init__(self) -> None:
        self.is_on = False
        self._noted: Queue[CallRecord] | None = None
        self._users = 0

    def start(self) -> Queue[CallRecord]:
        """Take notes from now on; all services of the process share the queue."""
        self._users += 1
        if self._noted is None:
            self._noted, self.is_on = Queue(), True
        return self._noted

    def stop(self) -> None:
        """Take none, once the last service has stopped."""
        self._users -= 1
        if self._users == 0:
            self._noted, self.is_on = None, False

    def has_room(self) -> bool:
        """Whether one more span is kept just now: what is dropped need not be put together first."""
        return self._noted is not None and self._noted.has_room()

    def call_served(self, method: str, code: str, seconds: float) -> None:
        """A call was answered here: below what its caller named, else below the transition that it led to.

        Calls that belong to no trace have no span; pointsman_rpc_seconds counts them all.
        """
        place = current_parent()
        if place and self._noted is not None:
            self._noted.add(ServerCall(place, method, code, now_ns(), seconds))

    def call_made(self, traceparent: str, service: str, method: str, ended: tuple[str, float]) -> None:
        """A call was made from here: below the transition that asked for it."""
        if traceparent and self._noted is not None:
            self._noted.add(ClientCall(traceparent, service, method, *ended, now_ns()))

    def committed(self, commit: Commit, steps: Sequence[Transition]) -> None:
        """A batch is durable: below the first transition it wrote, linked with those of the other entities."""
        if steps and self._noted is not None:
            self._noted.add(CommitRecord(commit, steps[: MAX_LINKS + 1]))


call_recorder = CallRecorder()
