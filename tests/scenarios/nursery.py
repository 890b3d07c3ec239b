"""Bears `pointsman` commands: all is imported once, so that each is a process of its own without a second of imports.

A datagram on standard input names folder, environment and arguments, and carries the command's output and a pipe, on which its
pid is written, and its wait status after its end. A command ends as an interpreter does, and outlives the nursery as it would
outlive a test.
"""

import gc
import json
import os
import socket
import sys
import tempfile
from contextlib import suppress
from importlib import import_module

from pointsman.cli.__main__ import main as command_line
from pointsman.cli.commands import COMMANDS
from pointsman.services.all_in_one import CONTEXTS
from pointsman.services.router.rules import standard_rule_book
from tests.helpers.migrations import migrate_beforehand, remember_migrations

LATER = ("alembic.command", "cryptography.x509", "pointsman.credentials.certificate")
"""Imported by need."""
LONGEST = 1 << 17
"""Bytes of a request: an environment and a command line."""


def mind(output: int, report: int) -> None:
    """Go on as the command in a child, and stay behind to tell its pid and how it ends."""
    child = os.fork()
    if not child:
        return
    os.close(output)
    os.write(report, f"{child}\n".encode())
    os.write(report, f"{os.waitpid(child, 0)[1]}\n".encode())
    os._exit(0)


def become(wanted: dict[str, object], output: int, report: int) -> None:
    """Be a process as a shell would have started it."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    os.close(report)
    os.chdir(str(wanted["folder"]))
    os.environ.clear()
    os.environ.update(wanted["environment"])  # type: ignore[call-overload]
    tempfile.tempdir = None
    sys.argv[1:] = wanted["arguments"]  # type: ignore[call-overload]


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


def main() -> None:
    """Bear commands until nobody asks any more; returns in each of them."""
    load_all()
    requests = socket.socket(fileno=os.dup(0))
    while True:
        request, passed, _flags, _address = socket.recv_fds(requests, LONGEST, 2)
        if not request:
            sys.exit()
        if not os.fork():
            requests.close()
            mind(*passed)
            return become(json.loads(request), *passed)
        for number in passed:
            os.close(number)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    main()
    command_line()
