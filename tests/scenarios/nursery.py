"""Bears `pointsman` commands and services: all is imported once, so that each is a process without a second of imports.

A datagram on standard input names module, folder, environment and arguments, whether its errors are nobody's and
whether its output is its terminal; it carries the output and a pipe, on which the pid is written, and the wait status
after the end. A command ends as an interpreter does, and with the nursery, which ends with the tests. Crash points are
armed by its own environment, which may set its clock ahead, too.
"""

import fcntl
import gc
import json
import os
import runpy
import socket
import sys
import tempfile
import termios
from contextlib import suppress
from datetime import timedelta
from importlib import import_module

from pointsman.cli.commands import COMMANDS
from pointsman.services.all_in_one import CONTEXTS
from pointsman.services.chassis.core import crash
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.router.rules import standard_rule_book
from tests.helpers.children import end_with_parent
from tests.helpers.migrations import migrate_beforehand, remember_migrations
from tests.scenarios.born import AHEAD_SECONDS

LATER = ("alembic.command", "cryptography.x509", "pointsman.credentials.certificate")
"""Imported by need."""
LONGEST = 1 << 17
"""Bytes of a request: an environment and a command line."""


def mind(output: int, report: int) -> None:
    """Go on as the command in a child, and stay behind to tell its pid and how it ends."""
    end_with_parent()
    child = os.fork()
    if not child:
        end_with_parent()
        return
    os.close(output)
    os.write(report, f"{child}\n".encode())
    os.write(report, f"{os.waitpid(child, 0)[1]}\n".encode())
    os._exit(0)


def become(wanted: dict[str, object], output: int, report: int) -> None:
    """Be a process as a shell would have started it."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    if wanted["is_terminal"]:
        fcntl.ioctl(output, termios.TIOCSCTTY, 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.dup2(output if wanted["is_terminal"] else nothing, 0)
    os.dup2(output, 1)
    os.dup2(nothing if wanted["is_quiet"] else output, 2)
    os.close(output)
    os.close(report)
    os.chdir(str(wanted["folder"]))
    os.environ.clear()
    os.environ.update(wanted["environment"])  # type: ignore[call-overload]
    crash._fuse = crash._Fuse(os.environ.get(crash.ARMED_BY, ""))
    set_ahead(float(os.environ.pop(AHEAD_SECONDS, "0")))
    tempfile.tempdir = None
    sys.argv[1:] = wanted["arguments"]  # type: ignore[call-overload]


def set_ahead(seconds: float) -> None:
    """Lets the process see the time so much later."""
    told, ahead = SystemClock.now, timedelta(seconds=seconds)
    if seconds:
        SystemClock.now = lambda self: told(self) + ahead  # type: ignore[method-assign]


def load_all() -> None:
    """Import what any command could, at its start or later, read the rules, and remember the migrations."""
    for name in (*(f"pointsman.services.{context}.__main__" for context in CONTEXTS), *LATER):
        import_module(name)
    for command in COMMANDS.values():
        command.load()
    standard_rule_book()
    remember_migrations()
    migrate_beforehand()
    gc.freeze()  # else each child would copy all pages of the heap when it looks for garbage


def main() -> str:
    """Bear processes until nobody asks any more; returns in each of them, with the module that it is to run."""
    load_all()
    requests = socket.socket(fileno=os.dup(0))
    while True:
        request, passed, _flags, _address = socket.recv_fds(requests, LONGEST, 2)
        if not request:
            sys.exit()
        if not os.fork():
            requests.close()
            mind(*passed)
            wanted = json.loads(request)
            become(wanted, *passed)
            return str(wanted["module"])
        for number in passed:
            os.close(number)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    runpy.run_module(main(), run_name="__main__", alter_sys=True)
