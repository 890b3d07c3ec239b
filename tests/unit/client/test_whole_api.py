"""Every RPC of the contract can be called through the client, on a real server in this process."""

from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.orchestrator.v1 import agent_pb2, landing_pb2, schedule_pb2
from pointsman.api.orchestrator.v1.assignment_pb2 import CAPABILITY_VERIFY
from pointsman.api.orchestrator.v1.orchestrator_pb2 import CancelEach, RunSelection
from pointsman.api.orchestrator.v1.run_pb2 import ANSWER_KIND_CLARIFIED, RUN_STATE_CANCELLED
from pointsman.api.pipeline.v1 import pipeline_pb2, route_pb2, state_pb2
from pointsman.api.router.v1 import decision_pb2, outcome_pb2, policy_pb2, thinking_pb2
from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, tasks_pb2
from pointsman.client import (
    Again,
    Client,
    NotFound,
    Order,
    Reply,
    RetryableError,
    RunsChange,
    StateForbids,
    TerminalError,
    errors,
)
from pointsman.services.all_in_one import build_all
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import start
from pointsman.services.gateway.contract import services

EXCEPTED = {"MockService"}
TODAY = f"{datetime(2026, 1, 1, tzinfo=UTC):%Y-%m-%d}"


class RecordingChannel:
    """A channel that remembers the paths that were called."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self.called: set[str] = set()

    def __getattr__(self, kind: str) -> Any:
        def multi_callable(path: str, *args: Any, **options: Any) -> Any:
            real = getattr(self._channel, kind)(path, *args, **options)

            def call(request: Any, **terms: Any) -> Any:
                self.called.add(path)
                return real(request, **terms)

            return call

        return multi_callable


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[RecordingChannel]:
    running = await start(build_all(StoreSettings(data=tmp_path)), ServerSettings(port=0))
    real = open_channel(running.address)
    yield RecordingChannel(real)
    await real.close()
    await running.stop()


async def first(items: AsyncIterator[Any]) -> Any:
    """The first item of a stream that goes on."""
    async with aclosing(cast("Any", items)) as stream:
        return await anext(stream)


async def use_runs(client: Client) -> None:
    run = (await client.runs.submit(Order("fix the lexer", as_action=True))).run
    assert (await client.runs.get(run.id)).intent == "fix the lexer"
    assert [one.id async for one in client.runs.all()] == [run.id]
    assert (await client.runs.counts()).newest_position
    assert await client.agents.repositories() == []
    with pytest.raises(LookupError, match="no worker that is there offers a repository 'shop'"):
        await client.agents.offered("shop")
    assert [project.name async for project in client.runs.projects()] == ["local"]
    assert (await client.runs.label(run.id, {"team": "a"})).labels == {"team": "a"}
    assert (await first(client.runs.watch(run.id))).seq == 1
    assert (await first(client.runs.changes())).position == 1
    assert (await first(client.runs.transitions(run.id))).seq == 1
    assert (await first(client.runs.details(run.id))).payload_json == ""
    assert all([attempt.task_id == "T1" async for attempt in client.runs.evidence(run.id)])
    assert not (await client.runs.delivery(run.id)).accepted_commit
    assert (await client.runs.machine()).transitions
    with suppress(StateForbids):
        await client.runs.change(run.id, "and the parser")
    with pytest.raises(StateForbids):
        await client.runs.rerun(run.id, Again(wave=1))
    selection, change = RunSelection(text="lexer"), RunsChange(cancel=CancelEach())
    assert [one.id async for one in client.runs.selected(selection)] == [run.id]
    assert [one.changed async for one in client.runs.change_all(selection, change, dry_run=True)] == [False]
    with pytest.raises(TerminalError):
        await client.runs.answer(run.id, "no-such-question", Reply(ANSWER_KIND_CLARIFIED, "yes"))
    assert all([one.run_id == run.id async for one in client.agents.assignments(run.id)])
    assert [chunk async for chunk in client.agents.output(run.id)] == []
    assert (await client.runs.cancel(run.id)).state == RUN_STATE_CANCELLED


async def use_agents(client: Client) -> None:
    wanted = agent_pb2.Wanted(capabilities=[CAPABILITY_VERIFY])
    assert not await client.agents.poll("verifier-1", wanted, wait_seconds=0)
    assert [one.id async for one in client.agents.all()] == ["verifier-1"]
    key = agent_pb2.LeaseKey(assignment_id="asg_none", epoch=1)
    assert (await client.agents.heartbeat("verifier-1", [key])).lost_assignment_ids
    with suppress(TerminalError):
        await client.agents.complete("verifier-1", agent_pb2.Completion(lease=key))
    with suppress(TerminalError):
        await client.agents.fail("verifier-1", agent_pb2.Failure(lease=key, error="no"))
    with suppress(TerminalError):
        asked = agent_pb2.Permission(key="0" * 64, title="look elsewhere")
        await client.agents.request_permission("verifier-1", key, asked, wait_seconds=0)
    stored = await client.artifacts.put(b"a body", "text/plain")
    assert await client.artifacts.get(stored) == b"a body"


async def use_schedules(client: Client) -> None:
    spec = schedule_pb2.ScheduleSpec(cron="0 3 * * *", time_zone="Europe/Berlin")
    made = await client.schedules.create(Order("fix the lexer", as_action=True), spec)
    assert [one.id async for one in client.schedules.all()] == [made.id]
    assert (await client.schedules.pause(made.id, "holidays")).reason == "holidays"
    assert (await client.schedules.resume(made.id)).HasField("next_at")
    assert len((await client.schedules.trigger(made.id)).waiting) == 1
    assert not (await client.schedules.delete(made.id)).HasField("next_at")
    assert (await client.schedules.get(made.id)).state == schedule_pb2.SCHEDULE_STATE_DELETED


async def use_landing(client: Client) -> None:
    run = (await client.runs.submit(Order("fix the parser", as_action=True))).run
    with pytest.raises(StateForbids):
        await client.landing.enqueue(run.id, landing_pb2.LandingTerms(target="main"))
    assert [entry async for entry in client.landing.all(run_id=run.id)] == []
    assert not (await client.landing.take("integrator-1", ["a-repository"])).queue_id
    nothing = landing_pb2.Entry(id="entry_none")
    for call in (
        client.landing.get(nothing.id),
        client.landing.answer(nothing.id, landing_pb2.ENTRY_REPLY_RETRY),
        client.landing.cancel(nothing.id),
        client.landing.report("integrator-1", nothing, 1, landed=landing_pb2.AtCommit(commit="0" * 40)),
        first(client.landing.watch(nothing.id)),
    ):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(TerminalError):
        await client.landing.keep("integrator-1", "queue_none", 1)
    key, commit = agent_pb2.LeaseKey(assignment_id="run_none.a1", epoch=1), "0" * 40
    snapshot = landing_pb2.Snapshot(base_commit=commit, commit=commit)
    with pytest.raises(TerminalError):
        await client.landing.put_snapshot("coder-1", key, "a-repository", snapshot)
    assert list((await client.landing.snapshots("a-repository")).snapshots) == []
    coming = landing_pb2.Prediction(run_id="run_b", other_run_id="run_a", files=["a.py"])
    await client.landing.put_predictions("a-repository", [coming])
    assert [one.other_run_id for one in await client.landing.predictions("run_a")] == ["run_b"]
    await client.landing.wake_forge()
    assert not await client.landing.forge_woken("integrator-1", 0.01)


async def use_router(client: Client) -> None:
    message = decision_pb2.Message(text="fix the failing test in src/lexer.py")
    decided = await client.router.classify(message, session_id="s")
    assert (await client.router.preview(message)).mode == decided.mode
    both = await client.router.classify_all([message, decision_pb2.Message(text="hello")])
    assert [one.mode for one in both] == [decision_pb2.MODE_ACTION, decision_pb2.MODE_ANSWER]
    listed = [one.decision_id async for one in client.router.decisions(mode=decision_pb2.MODE_ACTION)]
    assert decided.decision_id in listed
    reaction = await client.router.report_outcome(decided.decision_id, outcome_pb2.OUTCOME_FAILURE, error_code="E1")
    assert reaction.consecutive_failures == 1
    weighed = await client.router.resolve_debate(
        decided.decision_id,
        outcome_pb2.DEBATE_KIND_PLANNING,
        advocate=outcome_pb2.Advocate(proposal="do it", confidence=0.9),
        critic=outcome_pb2.Critic(objection="none", severity=outcome_pb2.SEVERITY_LOW),
    )
    assert weighed.verdict
    assert (await client.router.route_thinking(thinking_pb2.ThinkingSnapshot())).rule
    rule = policy_pb2.OwnRule(id="ours", effect=policy_pb2.RULE_EFFECT_ACTION, pattern="ship it")
    stored = await client.router.set_policy(hard_routing=True, rules=[rule], expected_revision=0)
    assert await client.router.policy() == stored
    assert (await client.router.stats()).decisions >= 3
    assert isinstance(await client.router.export_log(TODAY), str)
    assert await client.router.forget_run("run_none") == 0


async def use_pipelines(client: Client) -> None:
    pipelines = client.pipeline
    assert (await pipelines.classify("fix the lexer")).template
    assert await pipelines.templates()
    assert not (await pipelines.parse_route("no marker")).found
    started = await pipelines.start(pipeline_pb2.StartPipelineRequest(template="standard"))
    one, stage = started.pipeline_id, started.next[0].stage
    delegation = await pipelines.delegate(one, stage, "coder")
    put = await pipelines.put_context(one, delegation.delegation_id, agent_id="coder", body="what I found")
    with pytest.raises(TerminalError):
        await pipelines.get_context(one, f"{put.handle}-of-nobody", delegation_id=delegation.delegation_id)
    done = await pipelines.complete(
        pipeline_pb2.CompleteStageRequest(
            pipeline_id=one,
            delegation_id=delegation.delegation_id,
            agent_id="coder",
            route=route_pb2.Route(verdict=route_pb2.VERDICT_PASS, route=route_pb2.ROUTE_TARGET_NEXT),
        )
    )
    assert done.disposition
    with pytest.raises(NotFound):
        await pipelines.reflection(one, stage)
    await pipelines.restart_from(one, stage, reason="again")
    await pipelines.skip(one, stage, reason="enough")
    assert (await pipelines.get(one)).summary.pipeline_id == one
    assert one in {summary.pipeline_id async for summary in pipelines.all()}
    assert (await first(pipelines.watch(one))).seq == 1
    assert (await first(pipelines.changes())).position == 1
    exported = await pipelines.export_state(one)
    imported = await pipelines.import_state(exported.state_json, barrier_json=exported.barrier_json, pipeline_id="two")
    assert imported.pipeline_id == "two"
    assert await pipelines.cancel(one) == state_pb2.PIPELINE_STATE_CANCELLED
    assert (await pipelines.clean_up(timedelta(days=1))).pipelines == 0
    assert await pipelines.forget_run("run_none") == 0


async def use_workflows(client: Client) -> None:
    workflows, one = client.workflow, "plan"
    specs = [model_pb2.TaskSpec(task_id=f"T{number}", name="do it", actions=["do it"]) for number in range(1, 6)]
    specs[4].blocked_by.append("api_spec")
    await workflows.upsert_plan(plans_pb2.UpsertPlanRequest(workflow_id=one, title="a plan", tasks=specs))
    assert len(await workflows.classify_dependencies(specs)) == 5
    hard = constraints_pb2.Constraint(constraint_id="C1", description="no option is renamed")
    await workflows.merge_constraints(one, [constraints_pb2.ConstraintSet(hard=[hard])])
    assert (await workflows.audit(one)).SerializeToString() is not None
    settings = plans_pb2.ExecutionSettings(execution_mode=model_pb2.EXECUTION_MODE_QUALITY_GATE)
    await workflows.execute(one, settings=settings)
    given = await workflows.next_tasks(one, limit=4, worker="w")
    assert [task.spec.task_id for task in given.tasks] == ["T1", "T2", "T3", "T4"]
    await workflows.release(one, ["T4"])
    await workflows.complete_task(one, "T1")
    await workflows.settle_tasks(one, completed=["T2"])
    await workflows.fail_task(one, "T3", reason="no")
    assert (await workflows.retry_task(one, "T3")).retry_count == 1
    await workflows.record_usage(one, characters=100)
    await workflows.pause(one, reason="lunch")
    await workflows.resume(one)
    await workflows.unblock(one, "api_spec")
    await workflows.skip_task(one, "T3", reason="not needed")
    rejected = tasks_pb2.RejectedTask(task_id="T4", reason="no", retry=True)
    with pytest.raises(StateForbids):
        await workflows.settle_tasks(one, rejected=[rejected])
    checked = constraints_pb2.Verification(constraint_id="C1", passed=False, checked_at=Timestamp(seconds=1))
    assert list((await workflows.record_verification(one, [checked])).unmet_constraint_ids) == ["C1"]
    assert not (await workflows.waive_constraint(one, "C1", reason="agreed")).unmet_constraint_ids
    assert (await workflows.get(one)).title == "a plan"
    assert [task.spec.task_id async for task in workflows.tasks(one, statuses=[model_pb2.TASK_STATUS_SKIPPED])] == [
        "T3"
    ]
    assert one in {entry.workflow_id async for entry in workflows.all()}
    assert (await first(workflows.watch(one))).seq == 1
    assert (await first(workflows.changes())).position == 1
    state, markdown = await workflows.export_state(one), await workflows.export_tasks(one)
    await workflows.import_state("copy", state, tasks_markdown=markdown)
    await workflows.import_tasks("other", markdown)
    await workflows.cancel_plan(one)
    assert "other" in {entry.workflow_id async for entry in workflows.resumable()}
    assert await workflows.forget_run("run_none") == 0


async def test_each_rpc_of_the_contract_is_reachable(channel: RecordingChannel) -> None:
    client = Client(cast("grpc.aio.Channel", channel))
    for use in (use_runs, use_schedules, use_agents, use_landing, use_router, use_pipelines, use_workflows):
        await use(client)
    contract = {
        f"/{service.full_name}/{method.name}"
        for service in services()
        if service.name not in EXCEPTED
        for method in service.methods
    }
    assert channel.called == contract


async def test_one_message_sent_twice_is_two_mutations(channel: RecordingChannel) -> None:
    client = Client(cast("grpc.aio.Channel", channel))
    request = pipeline_pb2.StartPipelineRequest(template="standard")
    first_id, second_id = [(await client.pipeline.start(request)).pipeline_id for _ in range(2)]
    assert first_id != second_id
    assert not request.request_id


def test_every_failure_says_by_its_type_whether_another_try_can_help() -> None:
    leaves = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.CallFailed)}
    leaves -= {errors.CallFailed, TerminalError, RetryableError}
    assert {one.__name__ for one in leaves if issubclass(one, RetryableError)} == {
        "LostRace",
        "Overloaded",
        "Unavailable",
    }
    assert all(issubclass(one, TerminalError) != issubclass(one, RetryableError) for one in leaves)
    assert all(f"── {one.__name__} " in str(errors.__doc__) for one in leaves)
