"""A limit of the model's provider is no failed attempt: the lease goes back, the account is named, usage is counted."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.profiles import Profile, profiles
from pointsman.worker import CommandAgent, Worker, Workspace
from pointsman.worker.provider_limits import account_of
from pointsman.worker.roles import Billing
from pointsman.worker.sdk import GiveUp, Job, LimitReached, Role
from tests.helpers.limits import within
from tests.unit.worker.agents import exchange, lease

DESIGN = work.DesignRequest(intent="greet")
LIMITED: list[dict[str, object]] = [
    {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 3}},
    {"type": "turn.failed", "error": {"message": "429 Too Many Requests"}},
]
BROKEN: list[dict[str, object]] = [{"type": "turn.failed", "error": {"message": "no such tool"}}]


def printing(lines: list[dict[str, object]], **fields: str) -> Profile:
    """A command that prints these lines and fails."""
    text = "\n".join(map(json.dumps, lines))
    return replace(Profile("box", (sys.executable, "-I", "-c", f"print({text!r}); raise SystemExit(1)")), **fields)  # type: ignore[arg-type]


async def work_on(profile: Profile, folder: Path) -> Job:
    job = Job(None, "box-designer", lease(assignments.PURPOSE_DESIGN, design=DESIGN), Usage())  # type: ignore[arg-type]
    await CommandAgent(Workspace(folder, {}), profile).work(job)
    return job


async def test_a_command_that_failed_by_a_limit_says_which_and_another_failure_is_one(tmp_path: Path) -> None:
    with pytest.raises(LimitReached) as reached:
        await work_on(printing(LIMITED, output="codex-json"), tmp_path)
    assert reached.value.limit.kind == pb.LIMIT_KIND_THROTTLED
    for profile in (printing(BROKEN, output="codex-json"), printing(LIMITED)):
        with pytest.raises(GiveUp) as failed:
            await work_on(profile, tmp_path)
        assert not isinstance(failed.value, LimitReached), "without a known format nobody knows whose words they are"


async def test_a_usage_file_wins_over_what_is_printed_and_a_printed_price_may_be_unknown(tmp_path: Path) -> None:
    lines = "\n".join(map(json.dumps, LIMITED[:1]))
    code = (
        "import os, pathlib; folder = pathlib.Path(os.environ['POINTSMAN_HANDOFF']); "
        f"(folder / 'detail_design.md').write_text('d'); print({lines!r}); "
    )
    leave = "(folder / 'usage.json').write_text('{\"tokens\": 5, \"cost_micros\": 9}')"
    for more, expected in (("", (10, 0, 10)), (leave, (5, 9, 0))):
        command = (sys.executable, "-I", "-c", code + more)
        usage = (await work_on(Profile("box", command, output="codex-json"), tmp_path)).usage
        assert (usage.tokens, usage.cost_micros, usage.unpriced_tokens) == expected


async def test_the_assignment_goes_back_with_the_limit_and_polls_name_the_account(tmp_path: Path) -> None:
    handler = CommandAgent(Workspace(tmp_path, {}), printing(LIMITED, output="codex-json")).work
    billing = Billing("codex/1", ("claude/2",))
    async with exchange() as (plane, client):
        worker = Worker("box")
        worker.add_role(Role("designer", assignments.CAPABILITY_DESIGN, handler, 1, billing))
        serving = asyncio.create_task(worker.serve(client))
        await plane.leases.put(lease(assignments.PURPOSE_DESIGN, design=DESIGN))
        async with within(20):
            (failure,) = (await plane.failed.get()).failures
        worker.stop()
        async with within(10):
            await serving
    assert (failure.returned, failure.limit.kind) == (True, pb.LIMIT_KIND_THROTTLED)
    wanted = plane.polls[0].wanted
    assert (wanted.account, list(wanted.instead_of)) == ("codex/1", ["claude/2"])


def test_the_same_key_is_the_same_account_and_no_key_can_be_read_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    account = account_of(profiles()["claude"])
    assert account.startswith("claude/")
    assert "secret" not in account
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another")
    assert account_of(profiles()["claude"]) != account
    assert account_of(profiles()["aider"]) == "", "nobody can tell its limits from its words"
