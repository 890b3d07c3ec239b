"""Spans that are noted while work is done (calls, commits, agents' work) and sent from a thread of their own.

They are best effort, unlike transitions: what does not fit is dropped and counted, so that work never waits for them.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVarTuple

from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from pointsman.otlp.noted import Noted
from pointsman.otlp.sending import Sender, is_sampled, new_resource, new_sampler, new_sender
from pointsman.otlp.span import request_of, span_of

CPU_SHARE = 0.005
"""How much of a core making and sending may take while there is other work."""
CLOSE_SECONDS = 5.0
Told = TypeVarTuple("Told")
log = logging.getLogger("pointsman.otlp")


class Recorder:
    """Takes notes of spans without waiting; a thread samples them, makes them into messages and sends them."""

    def __init__(self, sender: Sender, on_drop: Callable[[int], None] | None = None) -> None:
        self._sender = sender
        self._sampler = new_sampler()
        self._on_drop = on_drop or (lambda _count: None)
        self._limit = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or 2048)
        self._batch = min(int(os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or 512), self._limit)
        self._delay_seconds = float(os.environ.get("OTEL_BSP_SCHEDULE_DELAY") or 1000) / 1000
        self._noted: deque[tuple[Callable[..., Noted], tuple[Any, ...]]] = deque()
        self._dropped = 0
        self._resources: dict[str, Resource] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    def has_room(self) -> bool:
        """Whether one more is kept; the one that need not be made for that counts as dropped."""
        if len(self._noted) < self._limit:
            return True
        self._dropped += 1
        return False

    def note(self, tell: Callable[[*Told], Noted], *told: *Told) -> None:
        """Keep what a span is told from, if there is room, and let it be told when it is sent; never waits."""
        if self.has_room():
            self._noted.append((tell, told))

    def close(self) -> None:
        """Send what is there, once, and stop; a collector that does not answer is not waited for long."""
        self._stopping.set()
        self._thread.join(CLOSE_SECONDS)
        self._sender.shutdown()

    def _work(self) -> None:
        pause_seconds = self._delay_seconds
        while not self._stopping.wait(pause_seconds):
            begun = time.thread_time()
            self._send(self._batch)
            pause_seconds = max(self._delay_seconds, (time.thread_time() - begun) / CPU_SHARE)
        self._send(self._limit)

    def _send(self, most: int) -> None:
        taken = [self._noted.popleft() for _ in range(min(most, len(self._noted)))]
        dropped, self._dropped = self._dropped, 0
        by_service: dict[str, list[bytes]] = {}
        for tell, told in taken:
            noted = tell(*told)
            if is_sampled(self._sampler, noted.traceparent):
                by_service.setdefault(noted.sort.service, []).append(span_of(noted))
        for service, group in by_service.items():
            if not self._sender.send(request_of(group, self._resource(service))):
                dropped += len(group)
        if dropped:
            self._on_drop(dropped)
            log.debug("%d spans were dropped", dropped)

    def _resource(self, service: str) -> Resource:
        if service not in self._resources:
            self._resources[service] = new_resource(service)
        return self._resources[service]


def new_recorder(on_drop: Callable[[int], None] | None = None) -> Recorder:
    """A recorder that sends to where the standard variables say."""
    return Recorder(new_sender(), on_drop)
