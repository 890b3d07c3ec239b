"""Views of a live run: updated in place on a terminal, plain lines in a pipe, events as JSON."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1.assignment_pb2 import ASSIGNMENT_STATE_LEASED, Assignment, Purpose
from pointsman.api.orchestrator.v1.run_pb2 import ProofTerms, Run, RunState, Usage, WaitKind
from pointsman.cli.render.json_output import as_dict
from pointsman.cli.render.progress_lines import grade_text, progress_lines, work_line
from pointsman.cli.render.terminal import harmless, own_terminal
from pointsman.cli.render.transition_lines import cut, event_lines


class View(AbstractContextManager["View"], Protocol):
    """Shows a run; `shows_work` says whether it needs the live assignments."""

    shows_work: bool

    def transition(self, transition: Transition) -> None:
        """Shows a transition."""

    def run(self, run: Run, live: Sequence[Assignment] = ()) -> None:
        """Shows the run as it is now, with its open and leased assignments."""


class PlainView:
    """Prints one line for each transition of interest, and for each agent that begins to work."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.shows_work = not verbose
        self._lines = event_lines if verbose else progress_lines
        self._seen: set[tuple[str, int]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def transition(self, transition: Transition) -> None:
        """Prints the lines of a transition with its time."""
        for line in self._lines(transition):
            print(f"{transition.at.ToDatetime():%H:%M:%S}  {line.text}", flush=True)

    def run(self, run: Run, live: Sequence[Assignment] = ()) -> None:  # noqa: ARG002 - the protocol's
        """Prints who has begun to work since the last look."""
        for item in newly_held(live, self._seen):
            print(f"{_now():%H:%M:%S}  {work_line(item)}", flush=True)


class JsonView(PlainView):
    """Every transition as one JSON object per line."""

    def __init__(self) -> None:
        super().__init__(verbose=True)

    def transition(self, transition: Transition) -> None:
        """Prints all its fields."""
        print(json.dumps(as_dict(transition)), flush=True)


class QuietView(PlainView):
    """Shows nothing, for a command whose output is one JSON document."""

    def transition(self, transition: Transition) -> None:
        """Shows nothing."""

    def run(self, run: Run, live: Sequence[Assignment] = ()) -> None:
        """Shows nothing."""


class LiveView:
    """Prints coloured lines above a status that is updated in place."""

    shows_work = True

    def __init__(self, *, verbose: bool = False) -> None:
        from rich.console import Console
        from rich.live import Live

        self._lines = event_lines if verbose else progress_lines
        self._is_verbose = verbose
        self._console = Console(highlight=False, file=own_terminal())
        self._live = Live("", console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def transition(self, transition: Transition) -> None:
        """Prints the lines of a transition above the status."""
        from rich.text import Text

        for line in self._lines(transition):
            text = harmless(f"{transition.at.ToDatetime():%H:%M:%S}  {line.text}")
            self._console.print(Text(text, style=line.style))

    def run(self, run: Run, live: Sequence[Assignment] = ()) -> None:
        """Updates the status: state, tasks, stages, agents, what the run waits for, usage."""
        from rich.text import Text

        said = (status(run), *working_lines(live)) if self._is_verbose else (*plain_status(run), *map(_held_line, live))
        self._live.update(Text(harmless("\n".join(said)), style="bold"))


def newly_held(live: Sequence[Assignment], seen: set[tuple[str, int]]) -> list[Assignment]:
    """The assignments that an agent has begun to work on since the last look; adds them to those that were seen."""
    held = [item for item in live if item.state == ASSIGNMENT_STATE_LEASED and (item.id, item.attempt) not in seen]
    seen.update((item.id, item.attempt) for item in held)
    return held


def plain_status(run: Run) -> Iterator[str]:
    """Where the tasks of a run are."""
    done = sum(1 for task in run.tasks if task.status == "ACCEPTED")
    yield (
        f"{done} of {len(run.tasks)} tasks accepted, {run.usage.assignments} agents started" if run.tasks else "begins"
    )


def _held_line(item: Assignment) -> str:
    if item.state == ASSIGNMENT_STATE_LEASED:
        return f"  {work_line(item)}"
    what = item.stage or Purpose.Name(item.purpose)[8:].lower()
    return f"  {' '.join(part for part in (item.task_id, what) if part)}: waits for an agent"


def _now() -> datetime:
    now = Timestamp()
    now.GetCurrentTime()
    return now.ToDatetime()


def status(run: Run) -> str:
    """The status of a run in a few lines."""
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
    limits += [f"{cost}/{budget.cost_micros / 1e6 or 'no limit'}"] if (cost := cost_text(spent)) else []
    limits += [f"held by running work:{held}"] if (held := usage_text(run.held)) else []
    lines = [f"{state_name(run)}  {int(elapsed.total_seconds())} s  {', '.join(limits)}{grade_text(run.grade)}"]
    lines += [f"  {line}" for line in terms_lines(run.proof_terms)]
    lines += [
        f"  {task.task_id} {task.status}{grade_text(task.grade)} (attempt {task.attempt}) {cut(task.name, 80)}"
        f"{usage_text(task.usage)}"
        for task in run.tasks
    ]
    if run.HasField("waiting_for"):
        waiting = run.waiting_for
        kind = WaitKind.Name(waiting.kind).removeprefix("WAIT_KIND_").lower()
        lines.append(f"  waits for {kind}: {waiting.who} {waiting.action}")
    return "\n".join(lines)


def terms_lines(terms: ProofTerms) -> Iterator[str]:
    """What the proof has to show besides its commands."""
    if terms.fixes:
        yield f"has to fix {', '.join(terms.fixes)}"
    if terms.HasField("held_out"):
        yield f"is judged by held-out checks ({terms.held_out.sha256[:12]})"
    if terms.require_grade:
        yield f"a person sees what is worth less than {grade_text(terms.require_grade).removeprefix(', ')}"
    if terms.tests_may_change:
        yield "tests may change"


def cost_text(usage: Usage) -> str:
    """What it cost, as far as anybody knows; empty where nothing was reported."""
    if usage.unpriced_tokens:
        known = f", at least {usage.cost_micros / 1e6:.2f}" if usage.cost_micros else ""
        return f"cost unknown{known}"
    return f"cost {usage.cost_micros / 1e6:.2f}" if usage.cost_micros else ""


def usage_text(usage: Usage) -> str:
    """Tokens and cost, where an agent reported them."""
    parts = [f"{usage.tokens} tokens"] if usage.tokens else []
    parts += [cost] if (cost := cost_text(usage)) else []
    return f"  [{', '.join(parts)}]" if parts else ""


def working_lines(live: Sequence[Assignment]) -> Iterator[str]:
    """One line per live assignment; parallel stages of one task share a barrier."""
    stages = Counter(item.task_id for item in live if item.stage)
    for item in live:
        what = " ".join(part for part in (item.task_id, item.stage or Purpose.Name(item.purpose)[8:].lower()) if part)
        barrier = f", barrier of {stages[item.task_id]}" if item.stage and stages[item.task_id] > 1 else ""
        held = item.state == ASSIGNMENT_STATE_LEASED
        who = f"{item.agent_id} works on it (attempt {item.attempt})" if held else "waits for an agent"
        yield f"  {what}: {who}{barrier}"


def state_name(run: Run) -> str:
    """The name of a run's state."""
    return RunState.Name(run.state).removeprefix("RUN_STATE_")


def view_for(*, as_json: bool, verbose: bool = False) -> View:
    """The view for the kind of output."""
    if as_json:
        return JsonView()
    return LiveView(verbose=verbose) if sys.stdout.isatty() else PlainView(verbose=verbose)
