"""How long after a question's commit its notice arrives: `python -m tests.bench.notices [QUESTIONS]`, a line of JSON."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from pointsman._shared.system_time import now_seconds
from pointsman.client import Order
from pointsman.notify.delivery import Channel
from pointsman.notify.follower import Follower
from pointsman.notify.place import Place
from pointsman.testing.planes import control_plane_in
from tests.helpers.eventually import eventually
from tests.unit.notify.test_notices import listening


async def measure(count: int) -> dict[str, float]:
    """Ask so many questions one after the other, and compare the time of each commit with that of its notice."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder, listening() as receiver:
        async with control_plane_in(Path(folder)) as client:
            follower = Follower(client, Place(Path(folder) / "place.json"), Channel(receiver.url))
            following = asyncio.create_task(follower.run())
            for number in range(count):
                run_id = (await client.runs.submit(Order("fix something", as_action=True))).run.id

                async def arrived(wanted: int = number) -> bool:
                    return len(receiver.got) > wanted

                await eventually(arrived, 60)
                noticed_at = now_seconds()
                asked_at = (await client.runs.get(run_id)).question.asked_at
                seconds.append(noticed_at - asked_at.ToNanoseconds() / 1e9)
            following.cancel()
    seconds.sort()
    return {"questions": count, "p50_s": seconds[count // 2], "p99_s": seconds[min(count - 1, int(count * 0.99))]}


if __name__ == "__main__":
    measured = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
    print(json.dumps({name: round(value, 3) for name, value in measured.items()}))
