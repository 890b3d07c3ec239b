"""How a run is shown while it goes on: alive on a terminal, plain lines in a pipe, events as JSON."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1.assignment_pb2 import ASSIGNMENT_STATE_LEASED, Assignment, Purpose
from pointsman.api.orchestrator.v1.run_pb2 import Run, RunState, Usage, WaitKind
from pointsman.cli.render.json_output import as_dict
from pointsman.cli.render.transition_lines import told


class View(AbstractContextManager["View"], Protocol):
    """What follows a run; `shows_work` when it wants to know who works on what."""

    shows_work: bool

    def transition(self, transition: Transition) -> None:
        """Something happened."""

    def run(self, run: Run, live: Sequence[Assignment] = ()) -> None:
        """The run as it is now, and what is being worked on or waits for somebody."""


class PlainView:
    """One line per thing worth telling."""

    shows_work = False

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

    def run(self, run: Run, live: Sequence[Assignment] = ()) -> None:
        """Lines are enough."""


class JsonView(PlainView):
    """Every transition as one JSON object per line."""

    def transition(self, transition: Transition) -> None:
        """Print it whole."""
        print(json.dumps(as_dict(transition)), flush=True)


class LiveView:
    """Lines with colours above, and the state below, kept up to date."""

    shows_work = True

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

    def run(self, run: Run, live: Sequence[Assignment] = ()) -> None:
        """Show the state, the tasks, their stages and agents, whom it waits for, what it spent."""
        from rich.text import Text

        self._live.update(Text("\n".join((status(run), *working_lines(live))), style="bold"))


def status(run: Run) -> str:
    """A run's state in a few lines."""
    until = Timestamp()
    until.GetCurrentTime()
    if not run.HasField("waiting_for"):
        until = run.updated_at
    elapsed = until.ToDatetime() - run.created_at.ToDatetime()
    spent, budget = run.usage, run.budget
    limits = [
        f"assignments {spent.assignments}/{budget.assignments}",
        f"transitions {spent.transitions}/{budget.transitions}",
    ]
    limits += [f"tokens {spent.tokens}/{budget.tokens or 'no limit'}"] if spent.tokens else []
    limits += (
        [f"cost {spent.cost_micros / 1e6:.2f}/{budget.cost_micros / 1e6 or 'no limit'}"] if spent.cost_micros else []
    )
    lines = [f"{state_name(run)}  {int(elapsed.total_seconds())} s  {', '.join(limits)}"]
    lines += [
        f"  {task.task_id} {task.status} (attempt {task.attempt}) {task.name[:80]}{spent_words(task.usage)}"
        for task in run.tasks
    ]
    if run.HasField("waiting_for"):
        waiting = run.waiting_for
        kind = WaitKind.Name(waiting.kind).removeprefix("WAIT_KIND_").lower()
        lines.append(f"  waits for {kind}: {waiting.who} {waiting.action}")
    return "\n".join(lines)


def spent_words(usage: Usage) -> str:
    """What was spent, where an agent said so."""
    said = [f"{usage.tokens} tokens"] if usage.tokens else []
    said += [f"cost {usage.cost_micros / 1e6:.2f}"] if usage.cost_micros else []
    return f"  [{', '.join(said)}]" if said else ""


def working_lines(live: Sequence[Assignment]) -> Iterator[str]:
    """Who works on what; stages of one task that go on side by side meet at a barrier."""
    stages = Counter(item.task_id for item in live if item.stage)
    for item in live:
        what = " ".join(part for part in (item.task_id, item.stage or Purpose.Name(item.purpose)[8:].lower()) if part)
        barrier = f", barrier of {stages[item.task_id]}" if item.stage and stages[item.task_id] > 1 else ""
        held = item.state == ASSIGNMENT_STATE_LEASED
        who = f"{item.agent_id} works on it (attempt {item.attempt})" if held else "waits for an agent"
        yield f"  {what}: {who}{barrier}"


def state_name(run: Run) -> str:
    """A run's state as the machine calls it."""
    return RunState.Name(run.state).removeprefix("RUN_STATE_")


def view_for(*, as_json: bool) -> View:
    """The view that fits where the output goes."""
    if as_json:
        return JsonView()
    return LiveView() if sys.stdout.isatty() else PlainView()
