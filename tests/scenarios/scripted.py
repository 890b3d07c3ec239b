"""Agents for scenarios that are functions: each role answers from a script, over real gRPC and real leases."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.message import Message

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agents
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.workflow.v1 import reading_pb2 as reading
from pointsman.client import Client, Terms
from pointsman.worker import Job, Worker
from tests.helpers.eventually import eventually
from tests.scenarios.planes import Plane

Handler = Callable[[Job], Message]
PASS = handoff.ReviewDecision(decision=handoff.REVIEW_VERDICT_PASS, review_level=handoff.REVIEW_LEVEL_EXECUTOR)


@asynccontextmanager
async def crew(here: Plane, **roles: Handler) -> AsyncIterator[None]:
    """A worker with these roles, present for the control plane as long as the block lasts."""
    worker = Worker("ada")
    for role, handler in roles.items():
        getattr(worker, role)(handler)
    serving = asyncio.create_task(worker.serve(Client(here.channel, Terms())))

    async def present() -> bool:
        listed = (await here.agents.ListAgents(agents.ListAgentsRequest())).agents
        return {item.id for item in listed} >= set(worker.agent_ids)

    try:
        await eventually(present)
        yield
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def path_of(here: Plane, run_id: str) -> list[tuple[str, str, str]]:
    """Each move of a run: from, event, to."""
    request = pb.ListTransitionsRequest(run_id=run_id, page=common.Page(page_size=1000))
    answer = await here.runs.ListTransitions(request)
    return [(t.from_state, t.event, t.to_state) for t in answer.transitions if t.from_state != t.to_state]


async def released(here: Plane, epic_id: str) -> None:
    """Until an epic can be resumed: the run that had it tells the workflow service after its own end."""

    async def is_resumable() -> bool:
        listed = (await here.workflow.ListResumable(reading.ListResumableRequest())).workflows
        return epic_id in [item.workflow_id for item in listed]

    await eventually(is_resumable)


def planning(
    *confidences: float, tasks: int = 1, slots: Sequence[str] = ("survey",), blocked_by: Sequence[str] = ()
) -> Handler:
    """A planner whose tasks have new ids each time; its confidences in order, the last one from then on."""
    said = _in_order(confidences or (0.9,))
    numbers = iter(range(1, 100))

    def plan(job: Job) -> Message:
        if job.assignment.purpose == assignments.PURPOSE_PLAN_ANSWER:
            return work.FeedbackAnswers(confidence=0.9)
        planned = [_planned(f"T{next(numbers)}", blocked_by) for _ in range(tasks)]
        wanted = [work.ResearchSlot(id=slot, question=f"what about {slot}?") for slot in slots]
        return work.Plan(tasks=planned, confidence=next(said), research_slots=wanted)

    return plan


def _planned(task_id: str, blocked_by: Sequence[str]) -> work.PlanTask:
    criterion = handoff.AcceptanceCriterion(id=f"{task_id}-C1", statement="it is done", required=True)
    return work.PlanTask(
        id=task_id, name="do it", actions=["do it"], blocked_by=blocked_by, acceptance_criteria=[criterion]
    )


def researching(*confidences: float) -> Handler:
    """A researcher; its confidences in order, the last one from then on."""
    said = _in_order(confidences or (0.9,))

    def research(job: Job) -> Message:
        return handoff.ResearchReport(
            agent_id=job.agent_id,
            slot=job.work.slot.id,
            summary_md=handoff.Document(text=f"# {job.work.slot.question}\n"),
            memory_jsonl=handoff.Document(text=f'{{"agentId":"{job.agent_id}"}}\n'),
            analysis_meta=handoff.Document(text='{"files":3}'),
            operations=handoff.Document(text='{"run":"ls","exit":0}\n'),
            confidence=next(said),
        )

    return research


def coding(*bare: str) -> Handler:
    """A coder whose claims have evidence, but for further ones of these ids."""

    def write(job: Job) -> Message:
        criteria = [item.id for item in job.work.handoff.acceptance_criteria]
        proven = handoff.Claim(id="K1", statement="done", criterion_ids=criteria, evidence_ids=["E1"])
        unproven = [handoff.Claim(id=name, statement="trust me", criterion_ids=criteria) for name in bare]
        evidence = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_URL, url="https://example.invalid/report")
        changed = handoff.ChangedFile(path="a.py", change=handoff.FILE_CHANGE_MODIFIED)
        return handoff.CoderResult(claims=[proven, *unproven], evidence=[evidence], changed_files=[changed])

    return write


def reviewing(*decisions: handoff.ReviewDecision) -> Handler:
    """A reviewer that passes every stage; of the work itself it says these decisions in order, the last from then on."""
    said = _in_order(decisions or (PASS,))

    def review(job: Job) -> Message:
        return next(said) if job.assignment.purpose == assignments.PURPOSE_REVIEW else PASS

    return review


def criticising(rounds: int, *keys: str) -> Handler:
    """A critic with the same remarks in as many rounds, and none after them."""
    remarks = [handoff.Feedback(key=key, statement=f"about {key}", severity=handoff.SEVERITY_MEDIUM) for key in keys]
    said = iter([remarks] * rounds)

    def criticise(_job: Job) -> Message:
        feedback = next(said, [])
        verdict = handoff.REVIEW_VERDICT_RETRY if feedback else handoff.REVIEW_VERDICT_PASS
        level = handoff.REVIEW_LEVEL_ORCHESTRATOR
        return handoff.ReviewDecision(decision=verdict, review_level=level, feedback=feedback)

    return criticise


def _in_order(values: Sequence[Any]) -> Iterator[Any]:
    yield from values[:-1]
    while True:
        yield values[-1]
