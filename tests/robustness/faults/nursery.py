"""Bears service processes that can be killed: all is imported once, so that each is a process of its own in no time.

A JSON line with `context` and `environment` on standard input bears one; its pid comes back. Its clock goes ahead by what
the file named FAULTS_CLOCK holds at each moment, and its commits take as much longer as the file named FAULTS_DISK says. The
children die with the nursery, the nursery with its input. With the name of a context it is that service itself, from nothing.
"""

import asyncio
import ctypes
import importlib
import json
import mmap
import os
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from pointsman.services.all_in_one import CONTEXTS, build_all
from pointsman.services.chassis.core import crash
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings, load
from pointsman.services.chassis.runtime.service import serve_until_stopped
from pointsman.services.chassis.storage.database import Database
from tests.robustness.faults.disk import Disk, slowed_transaction

CLOCK = "FAULTS_CLOCK"
DISK = "FAULTS_DISK"
LOG = "FAULTS_LOG"
OFFSET = struct.Struct("d")
PR_SET_PDEATHSIG = 1


def shifted_clock(path: Path) -> Callable[[SystemClock], datetime]:
    """The machine's clock and as many seconds more as the file says now."""
    with path.open("rb") as file:
        offset = mmap.mmap(file.fileno(), OFFSET.size, prot=mmap.PROT_READ)
    true_now = SystemClock.now

    def now(clock: SystemClock) -> datetime:
        return true_now(clock) + timedelta(seconds=OFFSET.unpack(offset[:])[0])

    return now


def serve(context: str, environment: dict[str, str]) -> None:
    """Be the service until killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(environment[LOG], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for number in (1, 2):
        os.dup2(log, number)
    os.environ.update(environment)
    crash._fuse = crash._Fuse(environment.get(crash.ARMED_BY, ""))
    SystemClock.now = shifted_clock(Path(environment[CLOCK]))  # type: ignore[method-assign,assignment]
    Database.transaction = slowed_transaction(Disk(Path(environment[DISK])))  # type: ignore[method-assign,assignment]
    asyncio.run(serve_until_stopped(build_all(load(StoreSettings), (context,)), load(ServerSettings), print))


def bear(wanted: dict[str, object]) -> int:
    """A child that serves; its pid."""
    child = os.fork()
    if child:
        return child
    try:
        environment = wanted["environment"]
        assert isinstance(environment, dict)
        serve(str(wanted["context"]), environment)
    except BaseException:  # noqa: BLE001 - the log keeps the last words of a child
        traceback.print_exc()
    finally:
        os._exit(1)


def main() -> None:
    """Nothing starts a thread before the fork; whoever asked learns of a child's death by its pidfd."""
    for context in CONTEXTS:
        importlib.import_module(f"pointsman.services.{context}.__main__")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print(json.dumps({"ready": True}), flush=True)
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps({"pid": bear(json.loads(line))}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(sys.argv[1], dict(os.environ))
    else:
        main()
