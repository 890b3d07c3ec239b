"""The part of AgentService that takes requests for permissions."""

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.ids import secret_digest
from pointsman.services.chassis.engine.waiting import wait_for_notification
from pointsman.services.chassis.rpc.paging import seconds_of
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.completion import lease_lost
from pointsman.services.orchestrator.domain.enums import PermissionState
from pointsman.services.orchestrator.domain.permissions import permission_id
from pointsman.services.orchestrator.servicer.holders import holder_of, own
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.polling import run_of
from pointsman.services.orchestrator.wire import enums

LOOK_SECONDS = 2.0
MAX_TEXT = 4000


class PermissionServicer:
    """Requests in, answers out."""

    def __init__(self, store: OrchestratorStore) -> None:
        self._store = store

    async def RequestPermission(
        self, request: agent.RequestPermissionRequest, caller: Caller
    ) -> agent.RequestPermissionResponse:
        """Record what is asked for, under the lease, and wait for the answer."""
        assignment_id = request.lease.assignment_id
        command = commands.RequestPermission(
            run_of(assignment_id), assignment_id, request.lease.epoch, request.agent_id, request.permission.key,
            _words(request.permission), holder_of(request.agent_id, caller).principal, secret_digest(request.lease.secret),
        )  # fmt: skip
        answer = await self._store.ledger.submit(own(caller, assignment_id), command)
        state = answer.state
        if state is PermissionState.PENDING:
            state = await self._answered(command, caller.project, seconds_of(request.wait))
        return agent.RequestPermissionResponse(state=enums.PERMISSION_STATE.to_wire(state))

    async def _answered(
        self, command: commands.RequestPermission, project: str, wait_seconds: float
    ) -> PermissionState:
        """The answer, once there is one, or pending when the wait is over."""
        name, left = permission_id(command.assignment_id, command.key), wait_seconds
        with self._store.store.hub.subscribed(command.entity_id) as news:
            while True:
                news.clear()
                known = (await self._store.view(project, command.entity_id)).run.permissions.get(name)
                if known is None:
                    raise lease_lost(command.assignment_id, "nobody has to work on it any more")
                if known.state is not PermissionState.PENDING or left <= 0:
                    return known.state
                await wait_for_notification(news, min(left, LOOK_SECONDS))
                left -= LOOK_SECONDS


def _words(permission: agent.Permission) -> str:
    """What is asked for, in one paragraph; the words are the agent's."""
    kind = f"{permission.tool_kind}: " if permission.tool_kind else ""
    places = f" ({', '.join(permission.locations)})" if permission.locations else ""
    return f"{kind}{permission.title}{places}"[:MAX_TEXT]
