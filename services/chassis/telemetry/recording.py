"""Records calls and commits for their spans; only while spans are exported."""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from pointsman._shared.otlp.queue import Queue
from pointsman._shared.otlp.span_record import Kind, SpanRecord, SpanTemplate, now_ns, span_id_in, trace_id_in
from pointsman.services.chassis.telemetry.context import Transition, current_parent, transition_id

MAX_LINKS = 31
FAULTS = frozenset({"INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "UNKNOWN"})
"""Codes that mark a server span as an error; a refusal is the caller's error, not the server's."""


class ServerCall(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """One call that this process served."""

    parent: str | Transition
    """The traceparent of the caller, or a transition; with seq 0 the call's own span has the transition's id."""
    method: str
    code: str
    end_ns: int
    seconds: float

    def to_span(self, span_id: bytes) -> SpanRecord:
        """The span of the call."""
        template = _call_template(_service_of(self.method), self.method, self.code, is_server=True)
        if isinstance(self.parent, str):
            traceparent, parent_id = self.parent, span_id_in(self.parent)
        else:
            traceparent, parent_id = self.parent[0], transition_id(*self.parent)
            if self.parent[2] == 0:
                parent_id, span_id = b"", parent_id
        return SpanRecord(template, traceparent, parent_id, span_id, self.end_ns - int(self.seconds * 1e9), self.end_ns)


class ClientCall(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """One call that this process made to a peer."""

    traceparent: str
    service: str
    method: str
    code: str
    seconds: float
    end_ns: int

    def to_span(self, span_id: bytes) -> SpanRecord:
        """The span of the call."""
        template = _call_template(self.service, self.method, self.code, is_server=False)
        begin_ns = self.end_ns - int(self.seconds * 1e9)
        return SpanRecord(template, self.traceparent, span_id_in(self.traceparent), span_id, begin_ns, self.end_ns)


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One group commit, as far as its span shows it."""

    store: str
    system: str
    commands: int
    transitions: int
    begin_us: int
    end_us: int


class CommitRecord(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """One group commit and the transitions that it wrote."""

    commit: Commit
    transitions: Sequence[Transition]
    """One transition of each changed entity, at most MAX_LINKS + 1."""

    def to_span(self, span_id: bytes) -> SpanRecord:
        """The span of the commit: a child of its first transition, linked to the others."""
        commit, (first, *others) = self.commit, self.transitions
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
    """The context of `/pointsman.api.<context>.v1.…`; `service` for any other method."""
    return method.split(".")[2] if method.count(".") > 2 else "service"


class CallRecorder:
    """Records the calls and commits of this process; callers check `is_on` first."""

    def __init__(self) -> None:
        self.is_on = False
        self._queue: Queue[CallRecord] | None = None
        self._users = 0

    def start(self) -> Queue[CallRecord]:
        """Start recording; all services of the process share the queue."""
        self._users += 1
        if self._queue is None:
            self._queue, self.is_on = Queue(), True
        return self._queue

    def stop(self) -> None:
        """Stop recording when the last service stops."""
        self._users -= 1
        if self._users == 0:
            self._queue, self.is_on = None, False

    def has_room(self) -> bool:
        """Whether one more record fits; checked before a record is made."""
        return self._queue is not None and self._queue.has_room()

    def call_served(self, method: str, code: str, seconds: float) -> None:
        """Record a served call as a child of the caller's span, or of the transition that the call led to.

        Calls without a trace have no span; pointsman_rpc_seconds counts all of them.
        """
        parent = current_parent()
        if parent and self._queue is not None:
            self._queue.add(ServerCall(parent, method, code, now_ns(), seconds))

    def call_made(self, traceparent: str, service: str, method: str, outcome: tuple[str, float]) -> None:
        """Record a call to a peer, with its code and duration, as a child of the transition that requested it."""
        if traceparent and self._queue is not None:
            self._queue.add(ClientCall(traceparent, service, method, *outcome, now_ns()))

    def committed(self, commit: Commit, transitions: Sequence[Transition]) -> None:
        """Record a group commit with one transition of each changed entity."""
        if transitions and self._queue is not None:
            self._queue.add(CommitRecord(commit, transitions[: MAX_LINKS + 1]))


call_recorder = CallRecorder()
