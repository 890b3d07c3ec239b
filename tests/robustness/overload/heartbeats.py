"""`python -m tests.robustness.overload.heartbeats ADDRESS PROJECT`: an agent in a process of its own, which keeps its leases and hands in.

It works until its input ends, then prints how it fared: beside a flood from its own process it would wait for itself.
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

from pointsman.api.common.v1.common_pb2 import Page
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub
from pointsman.api.orchestrator.v1.assignment_pb2 import ASSIGNMENT_STATE_OPEN
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.services.chassis.core.caller import LOCAL
from tests.bench.orchestrator import completion, wanted
from tests.helpers.eventually import eventually_now
from tests.helpers.limits import scaled
from tests.scenarios.planes import WISH

PAUSE_SECONDS = 0.25
PATIENCE_SECONDS = 60.0
REPORTS = 64
RUNS = 4
"""How many runs there are, and what each waits for: together enough to hand in until the flood is over."""
BEATS = 3
"""How often it says that it is alive before it hands in."""


class Agent:
    """Works on a run over a connection of its own: keeps its lease, hands in, and takes the next."""

    def __init__(self, address: str, project: str) -> None:
        channel: Any = grpc.insecure_channel(address)
        self._terms: dict[str, Any] = {
            "metadata": (("pointsman-project", project),),
            "timeout": scaled(PATIENCE_SECONDS),
        }
        self._stub: Any = AgentServiceStub(channel)
        self._runs: Any = OrchestratorServiceStub(channel)
        self._numbers = count(1)
        self.codes: dict[str, Counter[str]] = {"heartbeats": Counter(), "completions": Counter()}
        self.seconds: list[float] = []
        self._lease: agent.Lease | None = None

    def begin(self) -> None:
        """Runs with enough to do, all of it offered, and the first piece of it."""
        self._poll()
        for _ in range(RUNS):
            self._order()
        eventually_now(lambda: self._offered() == RUNS * REPORTS, PATIENCE_SECONDS)
        (self._lease,) = self._poll()

    def step(self, number: int) -> None:
        """Say that it is alive, or hand in."""
        begun = time.monotonic()
        if number % (BEATS + 1) < BEATS:
            self.codes["heartbeats"][self._try(self._beat)] += 1
        else:
            self.codes["completions"][self._try(self._hand_in)] += 1
        self.seconds.append(time.monotonic() - begun)

    def _poll(self) -> list[agent.Lease]:
        request = agent.PollRequest(**self._said(), wanted=wanted(1))
        return list(self._stub.Poll(request, **self._terms).leases)

    def _offered(self) -> int:
        request = agent.ListAssignmentsRequest(page=Page(page_size=1000), states=[ASSIGNMENT_STATE_OPEN])
        return len(self._stub.ListAssignments(request, **self._terms).assignments)

    def _order(self) -> None:
        order = pb.SubmitRequest(request_id=f"order-{next(self._numbers)}", message=WISH, research_expected=REPORTS)
        self._runs.Submit(order, **self._terms)

    def _beat(self) -> None:
        assert self._lease is not None
        key = agent.LeaseKey(
            assignment_id=self._lease.assignment.id, epoch=self._lease.epoch, secret=self._lease.secret
        )
        answer = self._stub.Heartbeat(agent.HeartbeatRequest(**self._said(), leases=[key]), **self._terms)
        assert not answer.lost_assignment_ids

    def _hand_in(self) -> None:
        assert self._lease is not None
        request = agent.CompleteRequest(**self._said(), completions=[completion(self._lease)], next=wanted(1))
        answer = self._stub.Complete(request, **self._terms)
        assert answer.outcomes[0].accepted
        self._lease = answer.leases[0]

    def _said(self) -> dict[str, Any]:
        return {"request_id": f"said-{next(self._numbers)}", "agent_id": "steady"}

    def _try(self, call: Callable[[], None]) -> str:
        try:
            call()
        except grpc.RpcError as error:
            failed: Any = error
            return str(failed.code().name)
        return "OK"


def beat(address: str, project: str) -> dict[str, Any]:
    """Work while anybody listens; the codes of the answers, and how long they took."""
    listening = threading.Thread(target=sys.stdin.read, daemon=True)
    steady = Agent(address, project)
    steady.begin()
    print("begun", flush=True)
    listening.start()
    for number in count():
        steady.step(number)
        listening.join(PAUSE_SECONDS)
        if not listening.is_alive():
            break
    return {**steady.codes, "seconds": sorted(steady.seconds)}


@contextmanager
def beating(address: str, project: str = LOCAL) -> Iterator[Callable[[], dict[str, Any]]]:
    """An agent that works until it is asked how it fared."""
    command = [sys.executable, "-m", "tests.robustness.overload.heartbeats", address, project]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()

        def fared() -> dict[str, Any]:
            told: dict[str, Any] = json.loads(process.communicate()[0])
            return told

        try:
            yield fared
        finally:
            process.kill()


if __name__ == "__main__":
    print(json.dumps(beat(*sys.argv[1:])), flush=True)
