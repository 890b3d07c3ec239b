"""A run and the person at the terminal: its questions are asked here, and Ctrl-C asks before it leaves."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from pointsman.api.orchestrator.v1.run_pb2 import (
    ANSWER_KIND_RAISE,
    ANSWER_KIND_RESTART_STAGE,
    ANSWER_KIND_SKIP_STAGE,
    AnswerKind,
    Run,
)
from pointsman.cli.options.run_options import read_budget
from pointsman.cli.render.run_progress import view_for
from pointsman.cli.session.follow import TERMINAL, follow, raised_budget
from pointsman.client import CallFailed, Client, Reply

STAGES = (ANSWER_KIND_RESTART_STAGE, ANSWER_KIND_SKIP_STAGE)
LEAVING = "\n[d]etach or [c]ancel the run? (or [s]top here: the run waits) "
LINE_BYTES = 4096


class Left(Exception):
    """The command leaves a run that has not ended; detached when the run is to go on all the same."""

    def __init__(self, run_id: str, *, detached: bool) -> None:
        super().__init__(run_id)
        self.run_id = run_id
        self.detached = detached


@contextmanager
def cancelled_by_signals() -> Iterator[list[int]]:
    """Each SIGINT and SIGTERM cancels the task that runs the block; the list says which came."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    came: list[int] = []

    def cancel(number: int) -> None:
        came.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel, number)
    try:
        yield came
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def line(prompt: str) -> str:
    """A line that the person types; EOFError when there is none. Not in a thread: one that reads cannot be stopped."""
    print(prompt, end="", flush=True)
    typed, keys, loop = asyncio.Event(), sys.stdin.fileno(), asyncio.get_running_loop()
    loop.add_reader(keys, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(keys)
    data = os.read(keys, LINE_BYTES)
    if not data:
        print()
        raise EOFError
    return data.decode(errors="replace").strip()


async def follow_or_ask(client: Client, run_id: str, as_json: bool) -> Run:
    """Follow to the end; on a terminal, questions are asked here, and Ctrl-C asks what is meant by it."""
    run = Run()
    with cancelled_by_signals() as came:
        while run.state not in TERMINAL:
            try:
                run = await follow(client, run_id, view_for(as_json=as_json), run.seq)
                if not run.HasField("question") or as_json or not sys.stdin.isatty():
                    return run
                run = await ask_here(client, run)
            except EOFError:
                return run
            except asyncio.CancelledError:
                return await _interrupted(client, run_id, came)
    return run


async def _interrupted(client: Client, run_id: str, came: list[int]) -> Run:
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    if not came:
        raise asyncio.CancelledError
    if not sys.stdin.isatty() or signal.SIGTERM in came:
        raise Left(run_id, detached=False)
    try:
        said = (await line(LEAVING)).lower()
    except (EOFError, asyncio.CancelledError):
        task.uncancel()
        said = "s"
    if said.startswith("c"):
        return await client.runs.cancel(run_id, "cancelled at the terminal")
    raise Left(run_id, detached=said.startswith("d"))


async def ask_here(client: Client, run: Run) -> Run:
    """Put the run's question to the person at the terminal; what cannot be taken is said, and asked again."""
    names = {AnswerKind.Name(kind).removeprefix("ANSWER_KIND_").lower(): kind for kind in run.question.takes}
    print("\n".join(("", run.question.text, *(f"  {subject}" for subject in run.question.subjects))))
    said = (await line(f"{', '.join(names)}? (or cancel, detach) ")).lower().replace("-", "_")
    if said == "detach":
        _detach(run)
    try:
        if said == "cancel":
            return await client.runs.cancel(run.id, "cancelled at the terminal")
        if said in names:
            return await client.runs.answer(run.id, run.question.id, await _reply(run, names[said]))
        print(f"not one of {', '.join(names)}, cancel, detach")
    except (CallFailed, ValueError) as failure:
        print(failure.message if isinstance(failure, CallFailed) else failure)
    return run


def _detach(run: Run) -> NoReturn:
    raise Left(run.id, detached=True)


async def _reply(run: Run, kind: AnswerKind.ValueType) -> Reply:
    """The answer with what belongs to it."""
    if kind == ANSWER_KIND_RAISE:
        return Reply(kind, budget=read_budget(await line(f"the new budget (for example {raised_budget(run)}): ")))
    if kind in STAGES:
        return Reply(kind, stage=await line("which stage: "))
    return Reply(kind, await line("in words (may be empty): "))
