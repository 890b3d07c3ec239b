"""The client of the exporting process: starts it, sends it requests, and restarts it when it dies.

Exporting takes little CPU time, but inside the service it would hold the interpreter lock that commands need.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

import structlog

from pointsman._shared.otlp import protocol
from pointsman._shared.otlp.queue import Queue
from pointsman.services.chassis.core.supervision import Loops
from pointsman.services.chassis.spans.export_protocol import HEADER, ExportAnswer, Records, decode_answer, encode, frame
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.chassis.telemetry.logs import logs_are_json
from pointsman.services.chassis.telemetry.recording import CallRecord

MODULE = "pointsman.services.chassis.spans.export_process"
RECORDS_CPU_SHARE = 0.005
"""The share of a core that spans of calls and commits may take."""
CLOSE_SECONDS = 5.0
ANSWER_SECONDS = 120.0
"""When a process that does not answer is replaced: long after the timeouts of the OpenTelemetry exporters."""
EXIT_SECONDS = 1.0

log = structlog.get_logger()


class ExporterGone(Exception):
    """The process ended without an answer: its spans may have arrived or not."""


class Exporter:
    """Exports all spans of this process through one child process; queued records are sent by a loop."""

    def __init__(self, queue: Queue[CallRecord]) -> None:
        protocol()  # refuse an unknown protocol before the service serves
        self._queue = queue
        self._loops = Loops()
        self._is_up = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[ExportAnswer]] = {}
        self._sending = asyncio.Lock()

    @property
    def delay_seconds(self) -> float:
        """The pause between two exports: each has a fixed cost."""
        return self._queue.delay_seconds

    def start(self) -> None:
        """Start the process without waiting for it."""
        self._loops.start("spans.process", self._run_process)
        self._loops.start("spans.records", self._send_records)

    async def export(self, request: bytes) -> ExportAnswer:
        """Send an encoded request to the process, once it is up; its answer."""
        await self._is_up.wait()
        assert self._writer is not None
        number = next(self._numbers)
        answer: asyncio.Future[ExportAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._writer.write(frame(number, request))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            log.warning("span_process_hangs", seconds=ANSWER_SECONDS)
            self._disconnect(self._writer)
            raise ExporterGone from None
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Send the remaining records and end the process; waits only a few seconds for the collector."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._send(self._queue.limit)
        await self._loops.stop()

    async def _run_process(self) -> None:
        """Run one process until it ends; the supervised loop starts the next one."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = start_process(theirs)
        try:
            reader, self._writer = await asyncio.open_connection(sock=ours)
            self._is_up.set()
            try:
                await self._read(reader)
            finally:
                self._disconnect(self._writer)
            code = await asyncio.to_thread(_exit_code, process)
            log.warning("span_process_ended", pid=process.pid, code=code)
        finally:
            process.kill()
            process.wait()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Resolve the futures of answers until the connection ends."""
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                length, number = HEADER.unpack(await reader.readexactly(HEADER.size))
                answer = decode_answer(await reader.readexactly(length))
                waiting = self._waiting.pop(number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)

    def _disconnect(self, writer: asyncio.StreamWriter) -> None:
        """Close the connection and fail all open requests."""
        self._is_up.clear()
        writer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ExporterGone())
        self._waiting.clear()

    async def _send_records(self) -> None:
        pause_seconds = self._queue.delay_seconds
        while True:
            await asyncio.sleep(pause_seconds)
            cpu_seconds = await self._send(self._queue.batch)
            pause_seconds = max(self._queue.delay_seconds, cpu_seconds / RECORDS_CPU_SHARE)

    async def _send(self, limit: int) -> float:
        """Send some records once and count the lost ones; the CPU time that it took."""
        async with self._sending:
            records, dropped = self._queue.take(limit)
            answer = ExportAnswer(lost=len(records))
            try:
                if records:
                    answer = await self.export(encode(Records(records)))
            except ExporterGone:
                log.info("span_records_lost", spans=len(records))
            finally:
                if dropped + answer.lost:
                    metrics.spans_dropped.inc(dropped + answer.lost)
            return answer.cpu_seconds


def start_process(connection: socket.socket) -> "subprocess.Popen[bytes]":
    """Start the process with its end of the socket pair, the same import path, and signals blocked."""
    form = "json" if logs_are_json() else "text"
    with _signals_blocked():
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", MODULE, form],
            stdin=connection.fileno(),
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        )


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block SIGINT and SIGTERM for a child process: a terminal sends them to the whole group, but it must end last."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_code(process: "subprocess.Popen[bytes]") -> int:
    """The exit code; a process that has closed its socket but does not end is killed."""
    try:
        return process.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
