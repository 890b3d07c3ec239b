"""The notes of calls and commits, each below the transition that it belongs to; taken only where spans are exported."""

from collections.abc import Sequence

from pointsman._shared.otlp.queue import Queue
from pointsman._shared.otlp.span_record import now_ns
from pointsman.services.chassis.telemetry.call_records import CallRecord, ClientCall, Commit, CommitRecord, ServerCall
from pointsman.services.chassis.telemetry.context import Transition, current_parent

MAX_LINKS = 31


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
