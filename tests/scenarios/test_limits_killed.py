"""A limit of a provider and a limited budget while the control plane is killed at each step: nothing is lost or told twice."""

from pathlib import Path

from pointsman.api.orchestrator.v1 import agent_pb2 as agents
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.client import Client, Order, connect
from tests.helpers.eventually import eventually
from tests.scenarios.commands import Running, until_killed

ACCOUNT, OTHER = "claude/5f2c", "codex/77aa"
HOUR = 3600


def wanted(account: str, *instead_of: str) -> agents.Wanted:
    code = [assignments.CAPABILITY_CODE]
    return agents.Wanted(capabilities=code, max_leases=1, account=account, instead_of=instead_of)


async def leased(data: Path, agent_id: str, want: agents.Wanted) -> agents.Lease:
    """The work that an agent is given, sooner or later."""
    async with connect(data=data, role=f"coder/{agent_id}") as client:
        return (await eventually(lambda: client.agents.poll(agent_id, want, 1.0), 30))[0]


async def failed(data: Path, agent_id: str, failure: agents.Failure) -> None:
    async with connect(data=data, role=f"coder/{agent_id}") as client:
        assert (await client.agents.fail(agent_id, failure)).accepted


async def told(client: Client, run_id: str) -> list[str]:
    said = {"account_paused", "work_taken_up", "assignment_retried", "budget_held"}
    return [one.event async for one in client.runs.transitions(run_id) if one.event in said]


async def test_what_is_held_who_rests_and_who_took_over_outlive_every_kill(tmp_path: Path) -> None:
    data = tmp_path / "data"
    environment = {"POINTSMAN_DATA": str(data), "POINTSMAN_GATEWAY_PORT": "0"}

    def up() -> Running:
        process = Running(("up", "--port", "0", "--no-crew"), environment, tmp_path)
        process.line_with("is up at")
        return process

    with until_killed(up()) as process:
        async with connect(data=data) as client:
            order = Order("write the greeting", template="fix", as_action=True, budget=runs.Budget(tokens=1000))
            run_id = (await client.runs.submit(order)).run.id
        held = await leased(data, "box-1", wanted(ACCOUNT))
        limit = agents.ProviderLimit(kind=agents.LIMIT_KIND_QUOTA, message="used up")
        limit.reset_at.FromSeconds(held.assignment.created_at.ToSeconds() + HOUR)
        await failed(data, "box-1", agents.Failure(lease=key(held), error="limit", returned=True, limit=limit))
        process.kill()
    with until_killed(up()) as process:
        async with connect(data=data) as client:

            async def is_told() -> bool:
                return await told(client, run_id) == ["account_paused"]

            await eventually(is_told, 30)
            run = await client.runs.get(run_id)
            assert run.held.tokens == 1000
            assert f"{ACCOUNT} rests until" in run.waiting_for.action
        async with connect(data=data, role="coder/box-1") as client:
            assert not await client.agents.poll("box-1", wanted(ACCOUNT), 0.0)
        held = await leased(data, "box-2", wanted(OTHER, ACCOUNT))
        assert held.assignment.attempt == 1
        process.kill()
    with until_killed(up()) as process:
        used = runs.Usage(tokens=1200)
        await failed(data, "box-2", agents.Failure(lease=key(held), error="cannot", usage=used))
        process.kill()
    with until_killed(up()):
        async with connect(data=data) as client:

            async def all_told() -> bool:
                return (await told(client, run_id)).count("work_taken_up") == 1

            await eventually(all_told, 30)
            assert sorted(await told(client, run_id)) == ["account_paused", "budget_held", "work_taken_up"]
            run = await client.runs.get(run_id)
            assert (run.held.tokens, run.usage.tokens) == (0, 1200)
            assert run.question.kind == runs.QUESTION_KIND_BUDGET


def key(held: agents.Lease) -> agents.LeaseKey:
    return agents.LeaseKey(assignment_id=held.assignment.id, epoch=held.epoch, secret=held.secret)
