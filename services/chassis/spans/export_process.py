"""The process that exports a service's spans: tells them from plain values, samples them, sends them, says what arrived.

`exporter` starts it as `python -m` with its end of a socket as standard input. It keeps nothing that cannot be asked for
again, and ends with the socket: a service that is killed leaves none behind.
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

from pointsman._shared.otlp.sender import NotedSender, Sender, is_sampled, new_resource, new_sampler, new_sender
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
"""More than there are stores in a process: a request that waits for the collector holds up its own store alone."""

log = structlog.get_logger()


class PageSender:
    """Sends the transitions of one store."""

    def __init__(self, service: str, sender: Sender) -> None:
        self._sender = sender
        self._resource = new_resource(service)
        self._sampler = new_sampler()
        self._memory = LastTransitions()

    def send(self, page: Page) -> ExportAnswer:
        """Send a page as one request, or say what has to be known before."""
        pasts = {past[0]: past[1:] for past in page.pasts}
        unknown = [position for position in self._memory.unknown(page.rows) if position not in pasts]
        if unknown:
            return ExportAnswer(unknown=unknown)
        spans = [
            span
            for step in self._memory.steps(page.rows, pasts)
            for traceparent, span in spans_of(step, page.kinds)
            if not page.is_sampled or is_sampled(self._sampler, traceparent)
        ]
        arrived = not spans or self._sender.send(request_of(spans, self._resource))
        return ExportAnswer(len(spans), 0 if arrived else len(spans))


class RecordSender:
    """Sends what was noted of calls and commits."""

    def __init__(self, sender: Sender) -> None:
        self._sender = NotedSender(sender)
        self._numbers = count(1 + randbits(63))

    def send(self, notes: Records) -> ExportAnswer:
        """Send them once; what does not arrive is lost."""
        told = [note.to_span(self._new_span_id()) for note in notes.notes]
        return ExportAnswer(len(told), self._sender.send(told))

    def _new_span_id(self) -> bytes:
        """An id that no other process has, without asking the system for chance each time."""
        return next(self._numbers).to_bytes(8, "big")


class ExportProcess:
    """Answers the service's questions, each store's and those about notes beside each other."""

    def __init__(self, link: socket.socket, sender: Callable[[], Sender] = new_sender) -> None:
        self._link = link
        self._writing = threading.Lock()
        self._new_sender = sender
        self._note_sender = RecordSender(sender())
        self._page_senders: dict[str, PageSender] = {}

    def run(self) -> None:
        """Serve until the other end is closed."""
        threads = ThreadPoolExecutor(THREADS)
        with self._link.makefile("rb") as asked:
            while frame := _read(asked):
                threads.submit(self._answer, *frame)

    def _answer(self, number: int, question: bytes) -> None:
        begun = time.thread_time()
        try:
            answer = self._sent(question)
        except Exception:
            log.exception("span_export_broken")
            answer = ExportAnswer(spans=1, lost=1)
        used = ExportAnswer(answer.spans, answer.lost, time.thread_time() - begun, answer.unknown)
        with self._writing:
            self._link.sendall(frame(number, encode(used)))

    def _sent(self, encoded: bytes) -> ExportAnswer:
        question = decode_request(encoded)
        if isinstance(question, Records):
            return self._note_sender.send(question)
        if question.service not in self._page_senders:
            self._page_senders[question.service] = PageSender(question.service, self._new_sender())
        return self._page_senders[question.service].send(question)


def _read(asked: BinaryIO) -> tuple[int, bytes] | None:
    try:
        header = asked.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        length, number = HEADER.unpack(header)
        return number, asked.read(length)
    except OSError:
        return None


def main() -> None:
    """End at once when the service has: what it still waits for, it asks of the next process."""
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
