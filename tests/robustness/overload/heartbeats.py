"""`python -m tests.robustness.overload.heartbeats ADDRESS`: an agent in a process of its own, which says that it is alive.

It beats until its input ends, then prints how it fared: beside a flood from its own process it would wait for itself.
"""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import grpc

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub

PAUSE_SECONDS = 0.25
PATIENCE_SECONDS = 60.0


class Agent:
    """Says that it is alive, over a connection of its own."""

    def __init__(self, address: str) -> None:
        channel: Any = grpc.insecure_channel(address)
        self._stub: Any = AgentServiceStub(channel)
        self._numbers = count(1)

    def beat(self) -> str:
        """One heartbeat; the code of its answer."""
        request = agent.HeartbeatRequest(request_id=f"beat-{next(self._numbers)}", agent_id="steady")
        try:
            self._stub.Heartbeat(request, timeout=PATIENCE_SECONDS)
        except grpc.RpcError as error:
            failed: Any = error
            return str(failed.code().name)
        return "OK"


def beat(address: str) -> dict[str, Any]:
    """Beat while anybody listens; the codes of the answers, and how long they took."""
    listening = threading.Thread(target=sys.stdin.read, daemon=True)
    listening.start()
    steady, codes = Agent(address), Counter[str]()
    seconds: list[float] = []
    while listening.is_alive():
        begun = time.monotonic()
        codes[steady.beat()] += 1
        seconds.append(time.monotonic() - begun)
        listening.join(PAUSE_SECONDS)
    return {"codes": codes, "seconds": sorted(seconds)}


@contextmanager
def beating(address: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """An agent that beats until it is asked how it fared."""
    command = [sys.executable, "-m", "tests.robustness.overload.heartbeats", address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def fared() -> dict[str, Any]:
            told: dict[str, Any] = json.loads(process.communicate()[0])
            return told

        try:
            yield fared
        finally:
            process.kill()


if __name__ == "__main__":
    print(json.dumps(beat(sys.argv[1])), flush=True)
