"""What agents printed, as it arrives with their heartbeats."""

from pointsman._shared.redaction import redact
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.services.orchestrator.domain.views import Output


def outputs(request: agent.HeartbeatRequest) -> list[Output]:
    """The pieces of output for leases that the heartbeat names; secrets that are recognised are masked."""
    epochs = {key.assignment_id: key.epoch for key in request.leases}
    return [
        Output(
            assignment_id=item.assignment_id,
            epoch=epochs[item.assignment_id],
            agent_id=request.agent_id,
            offset=item.offset,
            text=_masked(item.text),
            transcript_sha256=item.transcript.sha256,
            transcript_bytes=item.transcript.size_bytes,
        )
        for item in request.outputs
        if item.assignment_id in epochs
    ]


def _masked(text: str) -> str:
    """The text without secrets, as long as before: its length is where the next piece begins."""
    return redact(text).replace("\0", " ").ljust(len(text))[: len(text)]
