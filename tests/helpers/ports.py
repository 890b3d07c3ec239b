"""Ports for servers that have to be told where to listen."""

import os
import socket
from itertools import count

PORTS = range(20_000, 30_000)
"""Below those that the system gives to clients: a port that is free for a moment is not taken by somebody's connection."""
_ports = (PORTS[(os.getpid() * 97 + number) % len(PORTS)] for number in count())


def free_port() -> int:
    """A port that nobody listens on; no two of a process are the same, and other processes begin elsewhere."""
    for port in _ports:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("every port is taken")
