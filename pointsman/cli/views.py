"""How a run is shown while it goes on: alive on a terminal, plain lines in a pipe, events as JSON."""

import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

from google.protobuf.json_format import MessageToJson
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1.run_pb2 import Run, RunState, WaitKind
from pointsman.cli.telling import told


class View(AbstractContextManager["View"], Protocol):
    """What follows a run."""

    def transition(self, transition: Transition) -> None:
        """Something happened."""

    def run(self, run: Run) -> None:
        """The run as it is now."""


class PlainView:
    """One line per thing worth telling."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def transition(self, transition: Transition) -> None:
        """Print what is worth telling, with its time."""
        for line in told(transition):
            print(f"{transition.at.ToDatetime():%H:%M:%S}  {line.text}", flush=True)

    def run(self, run: Run) -> None:
        """Lines are enough."""


class JsonView(PlainView):
    """Every transition as one JSON object per line."""

    def transition(self, transition: Transition) -> None:
        """Print it whole."""
        print(MessageToJson(transition, indent=None, preserving_proto_field_name=True), flush=True)


class LiveView:
    """Lines with colours above, and the state below, kept up to date."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._live = Live("", console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def transition(self, transition: Transition) -> None:
        """Print what is worth telling above the state."""
        from rich.text import Text

        for line in told(transition):
            self._console.print(Text(f"{transition.at.ToDatetime():%H:%M:%S}  {line.text}", style=line.style))

    def run(self, run: Run) -> None:
        """Show the state, the tasks, whom it waits for, what it spent."""
        from rich.text import Text

        self._live.update(Text(status(run), style="bold"))


def status(run: Run) -> str:
    """A run's state in a few lines."""
    until = Timestamp()
    until.GetCurrentTime()
    if not run.HasField("waiting_for"):
        until = run.updated_at
    elapsed = until.ToDatetime() - run.created_at.ToDatetime()
    spent, budget = run.usage, run.budget
    limits = (
        f"assignments {spent.assignments}/{budget.assignments}, transitions {spent.transitions}/{budget.transitions}"
    )
    lines = [f"{state_name(run)}  {int(elapsed.total_seconds())} s  {limits}"]
    lines += [f"  {task.task_id} {task.status} (attempt {task.attempt}) {task.name[:80]}" for task in run.tasks]
    if run.HasField("waiting_for"):
        waiting = run.waiting_for
        kind = WaitKind.Name(waiting.kind).removeprefix("WAIT_KIND_").lower()
        lines.append(f"  waits for {kind}: {waiting.who} {waiting.action}")
    return "\n".join(lines)


def state_name(run: Run) -> str:
    """A run's state as the machine calls it."""
    return RunState.Name(run.state).removeprefix("RUN_STATE_")


def view_for(*, as_json: bool) -> View:
    """The view that fits where the output goes."""
    if as_json:
        return JsonView()
    return LiveView() if sys.stdout.isatty() else PlainView()
