"""Spans of agents' work, noted in the process that does it and sent from a thread of their own.

They are best effort, unlike transitions: what does not fit is dropped, so that work never waits for them.
"""

import logging
import threading
import time

from pointsman._shared.otlp.queue import Queue
from pointsman._shared.otlp.sender import NotedSender, Sender, new_sender
from pointsman._shared.otlp.span_record import SpanRecord

CPU_SHARE = 0.005
"""How much of a core making and sending may take while there is other work."""
CLOSE_SECONDS = 5.0
log = logging.getLogger("pointsman._shared.otlp")


class Recorder:
    """Takes notes of spans without waiting; a thread samples them, makes them into messages and sends them."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._noted_sender = NotedSender(sender)
        self._noted: Queue[SpanRecord] = Queue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    def note(self, noted: SpanRecord) -> None:
        """Keep a span, if there is room; never waits."""
        self._noted.add(noted)

    def close(self) -> None:
        """Send what is there, once, and stop; a collector that does not answer is not waited for long."""
        self._stopping.set()
        self._thread.join(CLOSE_SECONDS)
        self._sender.shutdown()

    def _work(self) -> None:
        pause_seconds = self._noted.delay_seconds
        while not self._stopping.wait(pause_seconds):
            begun = time.thread_time()
            self._send(self._noted.batch)
            pause_seconds = max(self._noted.delay_seconds, (time.thread_time() - begun) / CPU_SHARE)
        self._send(self._noted.limit)

    def _send(self, most: int) -> None:
        taken, dropped = self._noted.take(most)
        dropped += self._noted_sender.send(taken)
        if dropped:
            log.debug("%d spans were dropped", dropped)


def new_recorder() -> Recorder:
    """A recorder that sends to where the standard variables say."""
    return Recorder(new_sender())
