"""How deep the calls of one Submit go: `python -m tests.bench.depth` prints the deepest chain of each thread."""

import asyncio
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.services.orchestrator.domain.commands import Submit
from pointsman.services.orchestrator.domain.machine import decide
from pointsman.services.orchestrator.submit import SubmitMessage
from tests.scenarios.planes import NOBODY, plane

SERVICES = Path(__file__).parents[2] / "services"


class Depth:
    """The deepest chain of calls inside the services, for each thread."""

    def __init__(self) -> None:
        self.deepest: dict[str, list[str]] = {}
        self.on = False

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Looks at every call while it is on."""
        if not self.on or event != "call" or not _file(frame.f_code.co_filename):
            return
        frames = _callers(frame)[::-1]
        codes = [each.f_code for each in frames]
        chain = [f"{file}:{code.co_qualname}" for code in codes if (file := _file(code.co_filename))]
        thread = threading.current_thread().name
        if any(map(_is_step, frames)) and len(chain) > len(self.deepest.get(thread, ())):
            self.deepest[thread] = chain


def _callers(frame: FrameType | None) -> list[FrameType]:
    chain = []
    while frame is not None:
        chain.append(frame)
        frame = frame.f_back
    return chain


def _is_step(frame: FrameType) -> bool:
    """What every chain of a Submit goes through: the use case on the event loop, and its decision in another thread."""
    code = frame.f_code
    return code is SubmitMessage.submit.__code__ or (
        code is decide.__code__ and isinstance(frame.f_locals.get("command"), Submit)
    )


@cache
def _file(name: str) -> str:
    """A file of the services by its path inside; empty for any other."""
    path = Path(name).resolve()
    return str(path.relative_to(SERVICES)) if path.is_relative_to(SERVICES) else ""


async def deepest_of_submit(folder: Path) -> dict[str, list[str]]:
    """The deepest chain of each thread that a Submit runs in."""
    depth = Depth()
    threading.setprofile(depth.profile)
    sys.setprofile(depth.profile)
    try:
        async with plane(folder, NOBODY) as here:
            for number in range(3):
                depth.on = number > 0
                await here.runs.Submit(pb.SubmitRequest(request_id=f"depth-{number}", message="add a flag to the tool"))
                depth.on = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return depth.deepest


def main() -> None:
    """Prints the chains."""
    with tempfile.TemporaryDirectory() as folder:
        for thread, chain in asyncio.run(deepest_of_submit(Path(folder))).items():
            print(f"{thread}: {len(chain)}")
            for name in chain:
                print(f"  {name}")


if __name__ == "__main__":
    main()
