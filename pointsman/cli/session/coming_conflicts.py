"""Sees conflicts of a run coming while it is followed, and prints each once."""

import sys

from pointsman.cli.render.entries import prediction_lines
from pointsman.client import Client

CHECK_EVERY = 10
"""Ticks of a view between two looks."""


class ComingConflicts:
    """What is predicted for one run."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client, self._run_id = client, run_id
        self._ticks = 0
        self._printed: set[str] = set()

    async def check(self) -> None:
        """Prints what is predicted and was not printed yet, every few ticks."""
        self._ticks += 1
        if self._ticks % CHECK_EVERY:
            return
        for coming in await self._client.landing.predictions(self._run_id):
            key = f"{coming.run_id} {coming.task_id} {coming.other_run_id} {coming.other_task_id} {coming.files}"
            if key not in self._printed:
                self._printed.add(key)
                print("\n".join(prediction_lines(self._run_id, coming)), file=sys.stderr)
