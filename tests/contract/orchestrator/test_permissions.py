"""A permission on both databases: asked under the lease alone, waited for, and the same answer after a restart."""

import asyncio
from pathlib import Path
from typing import Any

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.errors import Reason
from tests.contract.orchestrator.test_service import RESEARCH, poll, reason_of
from tests.scenarios.planes import NOBODY, plane


async def test_a_permission_is_asked_under_the_lease_and_its_answer_reaches_who_waits(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run = await here.submit()
        lease = await poll(here, "ada", RESEARCH)
        wanted = agent.Permission(key="a" * 64, tool_kind="fetch", title="look it up", locations=["/usr/share"])

        def asked(request_id: str, seconds: int = 0, **changes: Any) -> agent.RequestPermissionRequest:
            held = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
            for name, value in changes.items():
                setattr(held, name, value)
            request = agent.RequestPermissionRequest(
                request_id=request_id, agent_id="ada", lease=held, permission=wanted
            )
            request.wait.FromSeconds(seconds)
            return request

        wrongs: list[dict[str, Any]] = [{"secret": "another"}, {"epoch": 9}, {"assignment_id": f"{run.id}.a99"}]
        for number, wrong in enumerate(wrongs):
            assert await reason_of(here.agents.RequestPermission(asked(f"w{number}", **wrong))) is Reason.LEASE_LOST
        first = await here.agents.RequestPermission(asked("first"))
        assert first.state == agent.PERMISSION_STATE_PENDING
        waiting = asyncio.create_task(_call(here.agents.RequestPermission(asked("second", 50))))
        question = (await here.runs.GetRun(pb.GetRunRequest(run_id=run.id))).run.question
        assert question.kind == runs.QUESTION_KIND_PERMISSION
        assert "fetch: look it up (/usr/share)" in question.text
        assert list(question.takes) == [runs.ANSWER_KIND_ALLOW, runs.ANSWER_KIND_DENY]
        answer = pb.AnswerRequest(
            request_id="allow", run_id=run.id, question_id=question.id, answer=runs.ANSWER_KIND_ALLOW
        )
        await here.runs.Answer(answer)
        assert (await waiting).state == agent.PERMISSION_STATE_ALLOWED
    async with plane(tmp_path, NOBODY, database_url) as here:
        again = await here.agents.RequestPermission(asked("after a restart"))
        assert again.state == agent.PERMISSION_STATE_ALLOWED


async def _call(call: Any) -> Any:
    return await call
