"""Records spans of agents' work and sends them from a thread.

They are best effort, unlike spans of transitions: what does not fit is dropped, so that work never waits for them.
"""

import logging
import threading
import time

from pointsman._shared.otlp.queue import Queue
from pointsman._shared.otlp.sender import Sender, SpanSender, new_sender
from pointsman._shared.otlp.span_record import SpanRecord

CPU_SHARE = 0.005
"""The share of a core that encoding and sending may take."""
CLOSE_SECONDS = 5.0
log = logging.getLogger("pointsman._shared.otlp")


class Recorder:
    """Queues span records without waiting; a thread samples, encodes and sends them."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._span_sender = SpanSender(sender)
        self._queue: Queue[SpanRecord] = Queue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    def record(self, span: SpanRecord) -> None:
        """Queue a span, or drop it if the queue is full; never waits."""
        self._queue.add(span)

    def close(self) -> None:
        """Send what is queued, once, and stop; waits only a few seconds for the collector."""
        self._stopping.set()
        self._thread.join(CLOSE_SECONDS)
        self._sender.shutdown()

    def _work(self) -> None:
        pause_seconds = self._queue.delay_seconds
        while not self._stopping.wait(pause_seconds):
            begun = time.thread_time()
            self._send(self._queue.batch)
            pause_seconds = max(self._queue.delay_seconds, (time.thread_time() - begun) / CPU_SHARE)
        self._send(self._queue.limit)

    def _send(self, limit: int) -> None:
        records, dropped = self._queue.take(limit)
        dropped += self._span_sender.send(records)
        if dropped:
            log.debug("%d spans were dropped", dropped)


def new_recorder() -> Recorder:
    """A recorder that sends to the collector of the standard variables."""
    return Recorder(new_sender())
