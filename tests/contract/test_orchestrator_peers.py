"""What runs ask of the other services, against the real ones."""

from pathlib import Path

from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.orchestrator.domain import peer_requests
from pointsman.services.orchestrator.domain.enums import Call, PipelineStatus
from pointsman.services.orchestrator.peers import Channels, Peers, perform
from tests.scenarios.planes import NOBODY, Plane, plane


def peers(here: Plane) -> Peers:
    return Peers(Channels(here.channel, here.channel, here.channel))


def effect(call: Call, data: object, run_id: str = "run_a") -> PendingEffect:
    return PendingEffect(run_id, 1, 0, str(call), to_json(data), "local", "", 0, 1)


async def test_an_attempt_starts_also_when_the_pipeline_of_the_one_before_is_not_there(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        data = peer_requests.StartPipeline("c1", "run_a/T1/2", "T1", "fix", "run_a/T1/1")
        told = await perform(peers(here), effect(Call.START_PIPELINE, data))
        assert (told.status, told.reflections) == (PipelineStatus.ACTIVE, ())
