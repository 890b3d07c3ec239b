"""The tools: what each takes and gives, and what it does with the control plane."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from pointsman.api.handoff.v1.handoff_pb2 import AcceptanceCriterion
from pointsman.api.orchestrator.v1.run_pb2 import ExecutionMode, Repository, Run, WaitKind
from pointsman.api.router.v1 import decision_pb2 as router
from pointsman.client import Order
from pointsman.mcp import parameters as take
from pointsman.mcp import results as give
from pointsman.mcp.questions import reply
from pointsman.mcp.workplace import Caller, Unusable

MAX_ATTEMPTS = 200
MAX_CHUNKS = 200
MAX_SCANNED = 500
MAX_SCHEDULES = 100
SCHEDULES_ARE_MADE_BY_PEOPLE = (
    'Schedules start runs while nobody looks, so that people make and change them: `pointsman schedule "…" --cron '
    '"0 3 * * *"`, `pointsman schedule pause|resume|delete ID`. trigger_schedule starts one run now.'
)
NO_CLONE = "this server has no clone of the repository; in one, run: pointsman deliver {run_id}"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    description: str
    takes: type[take.Parameters]
    gives: type[BaseModel]
    does: Callable[[Caller, Any], Awaitable[BaseModel]]
    changes: bool = False
    """Whether it changes something."""
    ends: bool = False
    """Whether it undoes or ends something."""


async def submit_run(caller: Caller, given: take.Submit) -> give.SubmitResult:
    """Start a run."""
    mode = ExecutionMode.Value(f"EXECUTION_MODE_{given.mode.upper()}")
    criteria = [
        AcceptanceCriterion(id=f"A{number}", statement=statement, required=True)
        for number, statement in enumerate(given.accept, 1)
    ]
    order = Order(
        given.message,
        verify_commands=given.verify,
        criteria=criteria,
        mode=mode,
        session_id=given.session_id,
        as_action=given.action,
        repository=Repository(id=given.repository_id, base_commit=given.base_commit) if given.repository_id else None,
    )
    notes: list[str] = []
    if given.repository:
        order, notes = await _on_offered(caller, order, given.repository)
    elif caller.workplace is not None and order.repository is None:
        order, notes = await caller.workplace.ordered(order)
    answer = await caller.client.runs.submit(order, given.request_id)
    routing = f"{answer.routing.mode} ({answer.routing.confidence}): {answer.routing.explanation}"
    run = give.run_result(answer.run) if answer.HasField("run") else None
    return give.SubmitResult(routing=routing, run=run, notes=notes)


async def _on_offered(caller: Caller, order: Order, name: str) -> tuple[Order, list[str]]:
    """The order on a repository that a worker offers, as it is checked out there."""
    try:
        offer = await caller.client.agents.offered(name)
    except LookupError as error:
        raise Unusable(str(error)) from None
    proof = order.verify_commands or [shlex.split(command) for command in offer.verify]
    order = replace(order, repository=Repository(id=offer.id, base_commit=offer.head), verify_commands=proof)
    return order, [f"{offer.name}: {offer.branch or 'no branch'} at {offer.head}"]


async def list_repositories(caller: Caller, given: take.Nothing) -> give.RepositoriesResult:  # noqa: ARG001
    """The repositories that workers offer."""
    return give.RepositoriesResult(
        repositories=[
            give.RepositoryResult(name=one.name, id=one.id, branch=one.branch, head=one.head, verify=list(one.verify))
            for one in await caller.client.agents.repositories()
        ]
    )


async def list_schedules(caller: Caller, given: take.Nothing) -> give.SchedulesResult:  # noqa: ARG001
    """The schedules of the project."""
    found = [give.schedule_result(one) async for one in caller.client.schedules.all()]
    return give.SchedulesResult(schedules=found[:MAX_SCHEDULES], note=SCHEDULES_ARE_MADE_BY_PEOPLE)


async def trigger_schedule(caller: Caller, given: take.Trigger) -> give.ScheduleResult:
    """Start a run of a schedule now."""
    return give.schedule_result(await caller.client.schedules.trigger(given.schedule_id, given.request_id))


async def plan(caller: Caller, given: take.OfRun) -> give.RunResult:
    """The plan of a run."""
    return give.run_result(await caller.client.runs.get(given.run_id))


async def get_run(caller: Caller, given: take.GetRun) -> give.RunResult:
    """A run as it is now, or as it is after it changed."""
    run = await caller.client.runs.get(given.run_id)
    if given.wait_seconds and not _needs_attention(run):
        with suppress(TimeoutError):
            async with asyncio.timeout(given.wait_seconds):
                await until_changed(caller, run)
        run = await caller.client.runs.get(given.run_id)
    return give.run_result(run)


def _needs_attention(run: Run) -> bool:
    return run.state in give.TERMINAL or run.HasField("question")


async def until_changed(caller: Caller, run: Run) -> None:
    """Until the run is in another state."""
    async for transition in caller.client.runs.watch(run.id, run.seq):
        if transition.from_state != transition.to_state:
            return


async def list_runs(caller: Caller, given: take.ListRuns) -> give.RunsResult:
    """Runs, newest first."""
    found: list[give.RunResult] = []
    token, scanned = given.page, 0
    while len(found) < given.limit and scanned < MAX_SCANNED:
        page = await caller.client.runs.page(given.limit - len(found), token)
        scanned += len(page.runs)
        found += [give.run_result(run) for run in page.runs if not given.waiting or _waits_for_person(run)]
        token = page.next_page_token
        if not token:
            break
    return give.RunsResult(runs=found, next_page=token)


def _waits_for_person(run: Run) -> bool:
    return run.HasField("question") or run.waiting_for.kind == WaitKind.WAIT_KIND_PERSON


async def answer(caller: Caller, given: take.Answer) -> give.RunResult:
    """Answer the open question."""
    run = await caller.client.runs.get(given.run_id)
    if not run.HasField("question"):
        raise Unusable(f"{run.id} asks nothing now; get_run shows what it waits for")
    said = reply(run.question, given)
    question_id = given.question_id or run.question.id
    return give.run_result(await caller.client.runs.answer(run.id, question_id, said, given.request_id))


async def change_requirement(caller: Caller, given: take.ChangeRequirement) -> give.RunResult:
    """Add to what is wanted."""
    return give.run_result(await caller.client.runs.change(given.run_id, given.message, given.request_id))


async def cancel(caller: Caller, given: take.Cancel) -> give.RunResult:
    """End a run on purpose."""
    return give.run_result(await caller.client.runs.cancel(given.run_id, given.reason, given.request_id))


async def get_evidence(caller: Caller, given: take.OfTask) -> give.EvidenceResult:
    """What was claimed, found and judged."""
    attempts = []
    async for attempt in caller.client.runs.evidence(given.run_id, given.task_id):
        attempts.append(give.attempt_result(attempt))
        if len(attempts) >= MAX_ATTEMPTS:
            break
    return give.EvidenceResult(attempts=attempts)


async def get_diff(caller: Caller, given: take.OfRun) -> give.DiffResult:
    """What the accepted work changes."""
    delivery = await caller.client.runs.delivery(given.run_id)
    files, commit = give.changed_files(delivery), delivery.accepted_commit
    if not commit or caller.workplace is None:
        note = NO_CLONE.format(run_id=given.run_id) if commit else "nothing is accepted yet"
        return give.DiffResult(accepted_commit=commit, files=files, note=note)
    patch = await caller.workplace.diff(caller.client, given.run_id)
    return give.DiffResult(accepted_commit=commit, files=files, diff=give.untrusted(patch, "agent"))


async def logs(caller: Caller, given: take.OfTask) -> give.LogResult:
    """What agents printed."""
    output: list[give.Untrusted] = []
    async for chunk in caller.client.agents.output(given.run_id, given.task_id):
        if len(output) >= MAX_CHUNKS:
            return give.LogResult(output=output, truncated=True)
        output.append(give.untrusted(chunk.text[-give.MAX_TEXT :], chunk.agent_id))
    return give.LogResult(output=output)


async def deliver(caller: Caller, given: take.Deliver) -> give.DeliverResult:
    """What a run delivered; in a clone, as a branch."""
    delivered = give.delivery_result(given.run_id, await caller.client.runs.delivery(given.run_id))
    if not delivered.accepted_commit:
        return delivered.model_copy(update={"note": "nothing is accepted yet"})
    if caller.workplace is None:
        return delivered.model_copy(update={"note": NO_CLONE.format(run_id=given.run_id)})
    branch = given.branch or f"pointsman/{given.run_id}"
    note = await caller.workplace.deliver(caller.client, given.run_id, branch)
    return delivered.model_copy(update={"branch": branch, "note": note})


async def route(caller: Caller, given: take.Route) -> give.RouteResult:
    """What the router decides about a message."""
    decision = await caller.client.router.classify(router.Message(text=given.message))
    return give.RouteResult(
        mode=router.Mode.Name(decision.mode).removeprefix("MODE_"),
        confidence=router.Confidence.Name(decision.confidence).removeprefix("CONFIDENCE_"),
        route=router.RouteTarget.Name(decision.route).removeprefix("ROUTE_TARGET_").lower(),
        debate=decision.debate == router.DEBATE_PLANNING,
        stakes=router.Stakes.Name(decision.stakes).removeprefix("STAKES_").lower(),
        triggers=[trigger.name for trigger in decision.triggers],
        rules=list(decision.rules),
    )


_TOOLS = (
    Tool(
        "submit_run",
        "Hand a piece of work to the swarm. It goes on by itself for minutes or hours; the run's id is the handle, and it survives restarts. Asking twice with the same request_id starts one run.",
        take.Submit, give.SubmitResult, submit_run, changes=True,
    ),
    Tool("plan", "The plan of a run: its tasks, how far each is, and what each is worth.", take.OfRun, give.RunResult, plan),
    Tool(
        "get_run",
        "A run as it is now: state, what it waits for, the open question. With wait_seconds it returns when the run changes its state, asks or ends.",
        take.GetRun, give.RunResult, get_run,
    ),
    Tool("list_repositories", "Repositories that workers who are there have checked out: name, branch, commit and proof.", take.Nothing, give.RepositoriesResult, list_repositories),
    Tool("list_runs", "Runs, newest first; `waiting`: only those that wait for a person.", take.ListRuns, give.RunsResult, list_runs),
    Tool(
        "answer",
        "Answer the open question of a run. The answer is the person's: ask them unless they already gave it. Without `answer`, and for answers that accept, approve, skip, waive or raise, the person is asked by elicitation, where the client can.",
        take.Answer, give.RunResult, answer, changes=True,
    ),
    Tool(
        "change_requirement",
        "Add to what a run is to do, or change it: live work is cancelled, the plan patched, and the run goes on.",
        take.ChangeRequirement, give.RunResult, change_requirement, changes=True,
    ),
    Tool("cancel", "End a run on purpose; what was accepted stays deliverable.", take.Cancel, give.RunResult, cancel, changes=True, ends=True),
    Tool("get_evidence", "What was claimed for each task, what the verifier found, who judged it and why.", take.OfTask, give.EvidenceResult, get_evidence),
    Tool("get_diff", "What the accepted work changes: files, and in a clone the patch.", take.OfRun, give.DiffResult, get_diff),
    Tool("logs", "What the agents of a run printed; it proves nothing.", take.OfTask, give.LogResult, logs),
    Tool(
        "deliver",
        "What a run delivered. In a clone of the repository it is put on a new branch; nothing is overwritten and the working tree is not touched.",
        take.Deliver, give.DeliverResult, deliver, changes=True,
    ),
    Tool("list_schedules", "Schedules: when each starts a run, from which branch, and how the last one ended.", take.Nothing, give.SchedulesResult, list_schedules),
    Tool("trigger_schedule", "Start a run of a schedule now, besides its times, on the terms that a person gave it.", take.Trigger, give.ScheduleResult, trigger_schedule, changes=True),
    Tool("route", "What the router decides about a message, by which rules and words; nothing is started.", take.Route, give.RouteResult, route),
)  # fmt: skip
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _TOOLS}
