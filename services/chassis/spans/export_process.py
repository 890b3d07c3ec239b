"""The exporting process of a service: makes spans from plain values, samples and sends them, answers what arrived.

`exporter` starts it as `python -m` with one end of a socket pair as standard input. Its only state is a cache, and it
ends when the socket closes: a killed service leaves no process behind.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from secrets import randbits
from typing import BinaryIO

import structlog

from pointsman._shared.otlp.sender import Sender, SpanSender, is_sampled, new_resource, new_sampler, new_sender
from pointsman._shared.otlp.span import request_of
from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from pointsman.services.chassis.spans.export_protocol import (
    HEADER,
    ExportAnswer,
    Page,
    Records,
    decode_request,
    encode,
    frame,
)
from pointsman.services.chassis.spans.transition_spans import spans_of
from pointsman.services.chassis.spans.transitions import LastTransitions
from pointsman.services.chassis.telemetry.logs import configure_logs

THREADS = 16
"""More than a process has stores: a request that waits for the collector delays its own store only."""

log = structlog.get_logger()


class PageSender:
    """Exports the transitions of one store."""

    def __init__(self, service: str, sender: Sender) -> None:
        self._sender = sender
        self._resource = new_resource(service)
        self._sampler = new_sampler()
        self._last_transitions = LastTransitions()

    def send(self, page: Page) -> ExportAnswer:
        """Send a page as one request, or answer which predecessors are needed first."""
        predecessors = {row[0]: row[1:] for row in page.predecessors}
        unknown = [position for position in self._last_transitions.unknown(page.rows) if position not in predecessors]
        if unknown:
            return ExportAnswer(unknown=unknown)
        spans = [
            span
            for transition in self._last_transitions.complete(page.rows, predecessors)
            for traceparent, span in spans_of(transition, page.kinds)
            if not page.is_sampled or is_sampled(self._sampler, traceparent)
        ]
        arrived = not spans or self._sender.send(request_of(spans, self._resource))
        return ExportAnswer(len(spans), 0 if arrived else len(spans))


class RecordSender:
    """Exports the records of calls and commits."""

    def __init__(self, sender: Sender) -> None:
        self._sender = SpanSender(sender)
        self._numbers = count(1 + randbits(63))

    def send(self, request: Records) -> ExportAnswer:
        """Send the records once; those that do not arrive are lost."""
        spans = [record.to_span(self._new_span_id()) for record in request.records]
        return ExportAnswer(len(spans), self._sender.send(spans))

    def _new_span_id(self) -> bytes:
        """A unique id: a random start, then a counter, because random numbers for each span cost more."""
        return next(self._numbers).to_bytes(8, "big")


class ExportProcess:
    """Serves the requests of one service; stores and records concurrently."""

    def __init__(self, connection: socket.socket, sender: Callable[[], Sender] = new_sender) -> None:
        self._socket = connection
        self._writing = threading.Lock()
        self._new_sender = sender
        self._record_sender = RecordSender(sender())
        self._page_senders: dict[str, PageSender] = {}

    def run(self) -> None:
        """Serve until the service closes its end."""
        threads = ThreadPoolExecutor(THREADS)
        with self._socket.makefile("rb") as stream:
            while frame := _read(stream):
                threads.submit(self._answer, *frame)

    def _answer(self, number: int, request: bytes) -> None:
        begun = time.thread_time()
        try:
            answer = self._handle(request)
        except Exception:
            log.exception("span_export_broken")
            answer = ExportAnswer(spans=1, lost=1)
        used = ExportAnswer(answer.spans, answer.lost, time.thread_time() - begun, answer.unknown)
        with self._writing:
            self._socket.sendall(frame(number, encode(used)))

    def _handle(self, encoded: bytes) -> ExportAnswer:
        request = decode_request(encoded)
        if isinstance(request, Records):
            return self._record_sender.send(request)
        if request.service not in self._page_senders:
            self._page_senders[request.service] = PageSender(request.service, self._new_sender())
        return self._page_senders[request.service].send(request)


def _read(stream: BinaryIO) -> tuple[int, bytes] | None:
    try:
        header = stream.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        length, number = HEADER.unpack(header)
        return number, stream.read(length)
    except OSError:
        return None


def main() -> None:
    """Run until the service ends; requests without an answer are repeated to the next process."""
    configure_logs(as_json=sys.argv[1:] == ["json"])
    try:
        process = ExportProcess(socket.socket(fileno=0))
        freeze_startup_objects()
        process.run()
    except Exception:
        log.exception("span_process_failed")
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
