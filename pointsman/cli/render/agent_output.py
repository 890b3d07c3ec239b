"""Prints agents' output line by line, each behind whose it is; what could move the cursor is not printed."""

from typing import TextIO

from pointsman.api.orchestrator.v1.agent_pb2 import OutputChunk
from pointsman.api.orchestrator.v1.assignment_pb2 import Purpose
from pointsman.worker.quoting import printable


class OutputPrinter:
    """Prints the chunks of several agents, whole lines at a time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun: dict[tuple[str, int], tuple[str, str]] = {}
        """Of each lease the label and the line that has begun."""
        self._ends: dict[tuple[str, int], int] = {}

    def show(self, chunk: OutputChunk) -> None:
        """Prints the lines that a chunk completes."""
        key, label = (chunk.assignment_id, chunk.epoch), label_of(chunk)
        missing = chunk.offset - self._ends.get(key, 0)
        if missing > 0:
            self._line(label, f"[… {missing} characters were not seen …]")
        self._ends[key] = chunk.offset + len(chunk.text)
        *lines, rest = (self._begun.get(key, ("", ""))[1] + printable(chunk.text)).split("\n")
        for line in lines:
            self._line(label, line)
        self._begun[key] = (label, rest)
        self._stream.flush()

    def close(self) -> None:
        """Prints the lines that were begun and not ended."""
        for label, rest in self._begun.values():
            if rest:
                self._line(label, rest)
        self._begun = {}

    def _line(self, label: str, line: str) -> None:
        self._stream.write(f"{label} | {line}\n")


def label_of(chunk: OutputChunk) -> str:
    """Whose output it is: the task with its stage or purpose, and the agent."""
    purpose = chunk.stage or Purpose.Name(chunk.purpose).removeprefix("PURPOSE_")
    return " ".join(part for part in (chunk.task_id, purpose, chunk.agent_id) if part)
