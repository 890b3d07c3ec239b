"""A run's dialogue with the person at the terminal: its questions, and what Ctrl-C means."""

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


class RunLeft(Exception):
    """Raised when the command leaves a run that has not ended; `detached` when the run is to go on."""

    def __init__(self, run_id: str, *, detached: bool) -> None:
        super().__init__(run_id)
        self.run_id = run_id
        self.detached = detached


@contextmanager
def cancelled_by_signals() -> Iterator[list[int]]:
    """Each SIGINT and SIGTERM cancels the task of the block; yields the list of received signals."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def cancel(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel, number)
    try:
        yield received
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def read_line(prompt: str) -> str:
    """Reads a line from the terminal; EOFError at its end. Not in a thread: a thread that reads cannot be cancelled."""
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


async def follow_or_ask(client: Client, run_id: str, as_json: bool, verbose: bool = False, after_seq: int = 0) -> Run:
    """Follows a run to its end; on a terminal it asks the run's questions, and asks what to do on Ctrl-C."""
    run = Run(seq=after_seq)
    with cancelled_by_signals() as received:
        while run.state not in TERMINAL:
            try:
                run = await follow(client, run_id, view_for(as_json=as_json, verbose=verbose), run.seq)
                if not run.HasField("question") or as_json or not sys.stdin.isatty():
                    return run
                run = await ask_on_terminal(client, run)
            except EOFError:
                return run
            except asyncio.CancelledError:
                return await _interrupted(client, run_id, received)
    return run


async def _interrupted(client: Client, run_id: str, received: list[int]) -> Run:
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    if not received:
        raise asyncio.CancelledError
    if not sys.stdin.isatty() or signal.SIGTERM in received:
        raise RunLeft(run_id, detached=False)
    try:
        typed = (await read_line(LEAVING)).lower()
    except (EOFError, asyncio.CancelledError):
        task.uncancel()
        typed = "s"
    if typed.startswith("c"):
        return await client.runs.cancel(run_id, "cancelled at the terminal")
    raise RunLeft(run_id, detached=typed.startswith("d"))


async def ask_on_terminal(client: Client, run: Run) -> Run:
    """Asks the run's question on the terminal; an invalid answer prints why, and the caller asks again."""
    names = {AnswerKind.Name(kind).removeprefix("ANSWER_KIND_").lower(): kind for kind in run.question.takes}
    about = (f"  {subject}" for subject in run.question.subjects if subject not in run.question.text)
    print("\n".join(("", run.question.text, *about)))
    typed = (await read_line(f"{', '.join(names)}? (or cancel, detach) ")).lower().replace("-", "_")
    if typed == "detach":
        _detach(run)
    try:
        if typed == "cancel":
            return await client.runs.cancel(run.id, "cancelled at the terminal")
        if typed in names:
            return await client.runs.answer(run.id, run.question.id, await _reply(run, names[typed]))
        print(f"not one of {', '.join(names)}, cancel, detach")
    except (CallFailed, ValueError) as failure:
        print(failure.message if isinstance(failure, CallFailed) else failure)
    return run


def _detach(run: Run) -> NoReturn:
    raise RunLeft(run.id, detached=True)


async def _reply(run: Run, kind: AnswerKind.ValueType) -> Reply:
    """The answer with its text, stage or budget."""
    if kind == ANSWER_KIND_RAISE:
        return Reply(kind, budget=read_budget(await read_line(f"the new budget (for example {raised_budget(run)}): ")))
    if kind in STAGES:
        return Reply(kind, stage=await read_line("which stage: "))
    return Reply(kind, await read_line("in words (may be empty): "))
