"""The control plane as a hook sees it: short calls with a deadline, and the live pipeline of a session."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.api.router.v1 import router_pb2_grpc
from pointsman.credentials.location import LOCK, owner_of
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.rpc.client import open_channel

DEFAULT_ADDRESS = "127.0.0.1:7460"
CALL_SECONDS = 4.0
MAX_SESSION, DIGEST_LENGTH = 64, 16
LIVE = (sp.PIPELINE_STATE_ACTIVE, sp.PIPELINE_STATE_ESCALATED)


class Control:
    """One connection, for the moment of a hook; it shows the token of the operator, whose session it is."""

    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        self._channel = open_channel(address)
        self.pipelines = pipeline_pb2_grpc.PipelineServiceStub(self._channel)
        self.router = router_pb2_grpc.RouterServiceStub(self._channel)
        self.environment = environment

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    def is_on(self, switch: str) -> bool:
        """Whether a switch of the environment is on; all are off by default."""
        return self.environment.get(switch, "") in {"1", "true", "yes", "on"}

    async def live_pipeline(self, session: str) -> sp.Pipeline | None:
        """The newest pipeline of the session that has not ended."""
        request = rq.ListPipelinesRequest(run_id=session, states=LIVE)
        request.page.page_size = 1
        listed = await self.pipelines.ListPipelines(request, timeout=CALL_SECONDS)
        if not listed.pipelines:
            return None
        wanted = rq.GetPipelineRequest(pipeline_id=listed.pipelines[0].pipeline_id)
        return (await self.pipelines.GetPipeline(wanted, timeout=CALL_SECONDS)).pipeline


def control_address(environment: Mapping[str, str]) -> str:
    """POINTSMAN_SERVER; else where the owner of the data directory serves; else the default."""
    if environment.get("POINTSMAN_SERVER"):
        return environment["POINTSMAN_SERVER"]
    owner = owner_of(StoreSettings().directory / LOCK)
    return owner.address if owner and owner.address else DEFAULT_ADDRESS


def session_of(event: Mapping[str, Any]) -> str:
    """The session's id, with nothing in it that a file name or a pipeline id could not have."""
    name = str(event.get("session_id") or "none")
    kept = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:MAX_SESSION]
    return kept if kept == name else f"{kept}-{hashlib.sha256(name.encode()).hexdigest()[:DIGEST_LENGTH]}"


def config_directory(environment: Mapping[str, str]) -> Path:
    """Where the user's files go."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or Path("~/.claude").expanduser())


def new_request_id() -> str:
    """An idempotency key for one call."""
    return secrets.token_hex(16)
