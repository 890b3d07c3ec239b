"""The way to the process that exports spans: it is started beside the service, asked, and started again when it dies.

Exporting takes little time, but in the service's own process every bit of it takes the interpreter away from commands.
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
NOTES_CPU_SHARE = 0.005
"""How much of a core making and sending the spans of notes may take while there is other work."""
CLOSE_SECONDS = 5.0
ANSWER_SECONDS = 120.0
"""When a process that says nothing is given up: long after the exporters of OpenTelemetry give a collector up."""
EXIT_SECONDS = 1.0

log = structlog.get_logger()


class ExporterGone(Exception):
    """The process ended before it answered: what it was asked may have arrived or not."""


class Exporter:
    """One process for all spans of this one; what was noted goes to it by itself."""

    def __init__(self, noted: Queue[CallRecord]) -> None:
        protocol()  # one that is not spoken here is refused before anybody is served
        self._noted = noted
        self._loops = Loops()
        self._is_up = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[ExportAnswer]] = {}
        self._sending = asyncio.Lock()

    @property
    def delay_seconds(self) -> float:
        """How long to gather between two exports while there is work: each costs something, however little is in it."""
        return self._noted.delay_seconds

    def start(self) -> None:
        """Start the process; it is not waited for."""
        self._loops.start("spans.process", self._live)
        self._loops.start("spans.notes", self._send_notes)

    async def ask(self, question: bytes) -> ExportAnswer:
        """Let it send what an encoded question holds, once it is up; its answer."""
        await self._is_up.wait()
        assert self._writer is not None
        number = next(self._numbers)
        answer: asyncio.Future[ExportAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._writer.write(frame(number, question))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            log.warning("span_process_hangs", seconds=ANSWER_SECONDS)
            self._hang_up(self._writer)
            raise ExporterGone from None
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Send the last notes and end the process; a collector that does not answer is not waited for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._send(self._noted.limit)
        await self._loops.stop()

    async def _live(self) -> None:
        """One life of the process; its loop begins the next one."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = start_process(theirs)
        try:
            reader, self._writer = await asyncio.open_connection(sock=ours)
            self._is_up.set()
            try:
                await self._read(reader)
            finally:
                self._hang_up(self._writer)
            code = await asyncio.to_thread(_exit_code, process)
            log.warning("span_process_ended", pid=process.pid, code=code)
        finally:
            process.kill()
            process.wait()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Hand on answers until there are no more."""
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                length, number = HEADER.unpack(await reader.readexactly(HEADER.size))
                answer = decode_answer(await reader.readexactly(length))
                waiting = self._waiting.pop(number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)

    def _hang_up(self, writer: asyncio.StreamWriter) -> None:
        """Whoever waits for an answer gets none."""
        self._is_up.clear()
        writer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ExporterGone())
        self._waiting.clear()

    async def _send_notes(self) -> None:
        pause_seconds = self._noted.delay_seconds
        while True:
            await asyncio.sleep(pause_seconds)
            cpu_seconds = await self._send(self._noted.batch)
            pause_seconds = max(self._noted.delay_seconds, cpu_seconds / NOTES_CPU_SHARE)

    async def _send(self, most: int) -> float:
        """Send some notes once and count what is lost; how long a core had to do with it."""
        async with self._sending:
            notes, dropped = self._noted.take(most)
            answer = ExportAnswer(lost=len(notes))
            try:
                if notes:
                    answer = await self.ask(encode(Records(notes)))
            except ExporterGone:
                log.info("notes_lost", spans=len(notes))
            finally:
                if dropped + answer.lost:
                    metrics.spans_dropped.inc(dropped + answer.lost)
            return answer.cpu_seconds


def start_process(link: socket.socket) -> "subprocess.Popen[bytes]":
    """The process with its end of the socket; it imports from where this one does, and hears no signal of this one's."""
    form = "json" if logs_are_json() else "text"
    with _deaf():
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", MODULE, form],
            stdin=link.fileno(),
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        )


@contextmanager
def _deaf() -> Iterator[None]:
    """What is started here never hears SIGINT or SIGTERM, which a terminal or a supervisor sends to all: it ends after us."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_code(process: "subprocess.Popen[bytes]") -> int:
    """How it ended; one that has closed its socket and stays is killed."""
    try:
        return process.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
