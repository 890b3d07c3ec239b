"""LangGraph: graphs with a durable checkpoint after each node, in this process, on SQLite. Runs in LangGraph's own environment.

`langgraph_chain.py CALLERS SECONDS FOLDER` prints how many steps were made durable.
"""

import itertools
import json
import sqlite3
import sys
import threading
import time
from importlib.metadata import version
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

STEPS = 25


class State(TypedDict):
    """What the graph carries."""

    number: int


def step(state: State) -> State:
    """One node; its result is checkpointed before the next one begins."""
    return {"number": state["number"] + 1}


def main() -> None:
    """Let each caller run chain after chain until the time is over."""
    callers, seconds, folder = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    builder = StateGraph(State)
    names = [f"step-{number}" for number in range(STEPS)]
    for name in names:
        builder.add_node(name, step)
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    store = sqlite3.connect(f"{folder}/langgraph.db", check_same_thread=False)
    store.execute("PRAGMA synchronous=FULL")
    graph = builder.compile(checkpointer=SqliteSaver(store))

    numbers = itertools.count()

    def chain() -> int:
        config = {"configurable": {"thread_id": f"chain-{next(numbers)}"}, "recursion_limit": 2 * STEPS}
        return graph.invoke({"number": 0}, config, durability="sync")["number"]

    chain()
    done, begun, used = [0] * callers, time.perf_counter(), time.process_time()

    def call(caller: int) -> None:
        while time.perf_counter() - begun < seconds:
            done[caller] += chain()

    threads = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed, cpu = time.perf_counter() - begun, time.process_time() - used
    found = {"steps_per_second": sum(done) / elapsed, "cpu_ms": cpu / sum(done) * 1000}
    print(json.dumps({"version": version("langgraph"), **found}))


main()
