"""DBOS: workflows of durable steps in this process, on SQLite. Runs in DBOS's own environment.

`dbos_chain.py CALLERS SECONDS FOLDER` prints how many steps were made durable.
"""

import json
import sys
import threading
import time
from importlib.metadata import version

from dbos import DBOS

STEPS = 25


@DBOS.step()
def step(number: int) -> int:
    """One step; its result is durable when it returns."""
    return number + 1


@DBOS.workflow()
def chain() -> int:
    """A chain of steps."""
    number = 0
    for _ in range(STEPS):
        number = step(number)
    return number


def main() -> None:
    """Let each caller run chain after chain until the time is over."""
    callers, seconds, folder = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    DBOS(config={"name": "peer", "system_database_url": f"sqlite:///{folder}/dbos.sqlite", "log_level": "ERROR"})
    DBOS.launch()
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
    print(json.dumps({"version": version("dbos"), **found}))
    DBOS.destroy()


main()
