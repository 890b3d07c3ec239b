"""A process of its own, since what it looks for is a crash: threads that decode types nobody has decoded before."""

import sys
import threading
from dataclasses import make_dataclass

from pointsman.services.chassis.core.codec import from_json

ROUNDS, DEPTH, THREADS = 40, 30, 8


def chain_of_types() -> list[type]:
    """Types of which each holds the one before."""
    types: list[type] = [make_dataclass("Type0", [("a", int, 0)], frozen=True)]
    for number in range(1, DEPTH):
        fields = [("a", int, 0), ("b", str, ""), ("inner", types[-1] | None, None)]
        types.append(make_dataclass(f"Type{number}", fields, frozen=True))
    return types


def meet(types: list[type], first: int, barrier: threading.Barrier) -> None:
    """Decode several of the types, as soon as every thread is ready."""
    barrier.wait()
    for number in range(DEPTH - 1, DEPTH - 10, -1):
        from_json('{"a":1,"inner":{"a":2}}', types[max(4, (number + first) % DEPTH)])


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    for _ in range(ROUNDS):
        fresh, barrier = chain_of_types(), threading.Barrier(THREADS)
        threads = [threading.Thread(target=meet, args=(fresh, number, barrier)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
