"""One seed from its beginning to its rest."""

import asyncio
import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

from tests.robustness.simulation.actors import Actors
from tests.robustness.simulation.checks import Checks
from tests.robustness.simulation.processes import Stores, World
from tests.robustness.simulation.scope import Scope
from tests.robustness.simulation.storage import MemoryDatabase

CALM_AFTER_SECONDS = (10, 20, 60, 200)
PATIENCE_SECONDS = 2.5 * 3600.0


@dataclass(slots=True)
class Outcome:
    """What one seed led to."""

    seed: int
    violations: list[str]
    transitions: int
    deaths: int
    digest: str
    ends: Counter[str] = field(default_factory=Counter)


class Simulation:
    """Stores and checks, used for one seed after the other."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.checks = Checks(self.stores)

    def run(self, seed: int, scope: Scope | None = None) -> Outcome:
        """All that happens under one seed."""
        world = World(self.stores, seed)
        asyncio.set_event_loop(None)
        actors = world.loop.run_until_complete(_live(world, scope or Scope.of(seed)))
        violations = [*world.bugs, *self.checks.violations(actors.told)]
        world.loop.close()
        return self._outcome(seed, violations, world)

    def _outcome(self, seed: int, violations: list[str], world: World) -> Outcome:
        digests, ends, transitions = [], Counter[str](), 0
        for name, store in self.stores.written.items():
            rows = self.checks.rows(store, "entities")
            transitions += sum(row.version for row in rows)
            digests += [row.digest for row in rows]
            ends.update(row.status for row in rows if name == "orchestrator")
        digest = f"{hash_of(digests)}@{world.loop.now:.3f}"
        return Outcome(seed, violations, transitions, sum(p.deaths for p in world.processes.values()), digest, ends)


def hash_of(digests: list[str]) -> str:
    """One digest for all journals."""
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:16]


async def _live(world: World, scope: Scope) -> Actors:
    """Trouble for a while, then calm, until everything has ended."""
    await world.start()
    actors = Actors(world, scope)
    loop = world.loop
    tasks = [loop.create_task(act) for act in actors.all]
    loop.call_later(world.chance.random.choice(CALM_AFTER_SECONDS), world.chance.be_calm)
    while loop.time() < PATIENCE_SECONDS and not (actors.at_rest and _delivered(world)):  # noqa: ASYNC110 - rows, no event
        await asyncio.sleep(1.0)
    if not actors.at_rest:
        world.bugs.append("somebody still waits for what was asked")
    world.bugs += [f"an actor ended with {error!r}" for task in tasks if task.done() and (error := task.exception())]
    actors.over = True
    rising = list(world.rising)
    for task in (*tasks, *rising, *(task for process in world.processes.values() for task in process.tasks)):
        task.cancel()
    await asyncio.wait((*tasks, *rising))
    for process in world.processes.values():
        process.writer.dead = True
        process.writer.end()
    await asyncio.sleep(0)
    return actors


def _delivered(world: World) -> bool:
    return not any(cast("MemoryDatabase", store.database).effects_wait for store in world.stores.all.values())
