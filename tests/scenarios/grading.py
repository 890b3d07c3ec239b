"""Orders from Submit to their grade: a real control plane and verifier, coders that are functions over real repositories."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from pointsman.api.handoff.v1 import delivery_pb2 as delivery
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.handoff.v1.proof_pb2 import Grade
from pointsman.api.orchestrator.v1.assignment_pb2 import Purpose
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, Repository, Run
from pointsman.client import Client, Order
from pointsman.testing.planes import control_plane_in
from pointsman.worker import Job, Verifier, Worker, Workspace
from pointsman.worker.verifier import BUNDLE_TYPE
from tests.helpers.eventually import eventually
from tests.scenarios.scripted import PASS, researching
from tests.unit.worker.repositories import repository

UNITTEST = ("python3", "-m", "unittest", "-q")
PATIENCE = 60.0
Edits = Mapping[str, str | None]
"""Files by path with their new content; None for one that is deleted."""


@dataclass(slots=True)
class Shop:
    """A control plane with a verifier, a coder and a reviewer, all over one repository."""

    client: Client
    folder: Path
    base: str
    prompts: list[bytes] = field(default_factory=list)
    """Everything that the coder and the reviewer were given."""

    asked: list[str] = field(default_factory=list)
    """The stages, or the purpose where there is none, for which they were asked."""

    agents: list[str] = field(default_factory=list)
    """Who was asked each time."""

    def keep(self, job: Job) -> None:
        """Remembers what an agent was given."""
        self.prompts.append(job.lease.SerializeToString())
        self.agents.append(job.agent_id)
        self.asked.append(job.assignment.stage or Purpose.Name(job.assignment.purpose))

    async def done(self, message: str = "change it", **order: Any) -> tuple[Run, delivery.Delivery]:
        """The run of an order once it has ended or asks, and what it delivers."""
        given = {"verify_commands": [UNITTEST], **order}
        where = Repository(id="repo", base_commit=self.base)
        run_id = (await self.client.runs.submit(Order(message, where, as_action=True, **given))).run.id

        async def settled() -> Run | None:
            run = await self.client.runs.get(run_id)
            return run if run.HasField("question") or run.HasField("ended_at") else None

        run = await eventually(settled, PATIENCE)
        assert run is not None
        return run, await self.client.runs.delivery(run_id) if run.HasField("ended_at") else delivery.Delivery()

    async def graded(self, **order: Any) -> str:
        """The grade of an order that ends without asking anybody."""
        run, _ = await self.done(**order)
        assert run.state == RUN_STATE_COMPLETE, run.question.text
        return grade_name(run.grade)


def grade_name(grade: Grade.ValueType) -> str:
    """A grade as people read it."""
    return Grade.Name(grade).removeprefix("GRADE_").replace("_", " ")


@asynccontextmanager
async def shop(
    tmp_path: Path,
    files: Mapping[str, str],
    *rounds: Edits,
    plan: Callable[[Job], work.Plan] | None = None,
    red: Collection[int] = (),
    coders: int = 1,
    reviews: Sequence[handoff.ReviewDecision] = (),
    thinks: Callable[[Job], Message] | None = None,
) -> AsyncIterator[Shop]:
    """Coders that make these edits, the next round each time one is asked; a reviewer that says yes.

    In the rounds `red` the coder says that its command ended with 1. Each of several coders is a worker of its own. The
    reviewer says what `reviews` has, and then yes. `thinks` plays planner and designer, also in the stages of a pipeline.
    """
    base = await repository(tmp_path / "user", dict(files))
    async with control_plane_in(tmp_path / "data") as client:
        here = Shop(client, tmp_path / "user", base)
        worker = Worker("box", ["repo"])
        worker.verifier(Verifier(Workspace(tmp_path / "verifier", {"repo": here.folder})).verify)
        write = _coder(here, tmp_path, rounds, red)
        worker.coder(write)
        others = [Worker(f"box-{number}", ["repo"]) for number in range(2, coders + 1)]
        for other in others:
            other.coder(write)
        worker.reviewer(_reviewer(here, reviews))
        worker.researcher(researching())
        if plan is not None:
            worker.planner(plan)
        if thinks is not None:
            worker.planner(thinks)
            worker.designer(thinks)
        serving = [asyncio.create_task(one.serve(client)) for one in (worker, *others)]
        agents = {agent_id for one in (worker, *others) for agent_id in one.agent_ids}

        async def present() -> bool:
            return {one.id async for one in client.agents.all()} >= agents

        try:
            await eventually(present)
            yield here
        finally:
            for one in serving:
                one.cancel()
            await asyncio.gather(*serving, return_exceptions=True)


def _reviewer(here: Shop, reviews: Sequence[handoff.ReviewDecision]) -> Callable[[Job], handoff.ReviewDecision]:
    left = iter(reviews)

    def review(job: Job) -> handoff.ReviewDecision:
        here.keep(job)
        return next(left, PASS)

    return review


def _coder(here: Shop, tmp_path: Path, rounds: Sequence[Edits], red: Collection[int]) -> Callable[[Job], Any]:
    left = iter(enumerate(rounds))
    workspace = Workspace(tmp_path / "coder", {"repo": here.folder})

    async def write(job: Job) -> handoff.CoderResult:
        here.keep(job)
        number, edits = next(left)
        async with workspace.folders(job) as folders:
            clone = await workspace.clone_for(job)
            base = job.assignment.repository.base_commit
            if not await clone.has(base):
                await clone.take_bundle(await job.client.artifacts.get(job.assignment.base_bundle), base)
            start = job.work.first.result_commit or base
            if not await clone.has(start):
                await clone.take_bundle(await job.client.artifacts.get(job.work.first.bundle), start)
            await clone.check_out(start, folders.tree)
            for name, content in edits.items():
                _edit(folders.tree / name, content)
            captured = await clone.capture(folders.tree, base, job.agent_id)
            bundle = await job.client.artifacts.put(await clone.make_bundle(base, captured.commit), BUNDLE_TYPE)
        made = _claims(job, edits, exit_code=1 if number in red else 0)
        made.changed_files.extend(captured.changed_files)
        made.base_commit, made.result_commit, made.tree_hash = base, captured.commit, captured.tree
        made.bundle.CopyFrom(bundle)
        return made

    return write


def _claims(job: Job, edits: Edits, exit_code: int) -> handoff.CoderResult:
    """A claim for each criterion: with its command, which ended with this exit code, else with a file that was written."""
    made = handoff.CoderResult()
    path, content = next((path, content) for path, content in edits.items() if content is not None)
    for item in job.work.handoff.acceptance_criteria:
        evidence = handoff.Evidence(id=f"E-{item.id}", kind=handoff.EVIDENCE_KIND_COMMAND, command=item.verify_command)
        evidence.exit_code = exit_code
        if not item.verify_command:
            digest = hashlib.sha256(content.encode()).hexdigest()
            evidence = handoff.Evidence(id=evidence.id, kind=handoff.EVIDENCE_KIND_FILE, path=path, digest=digest)
        made.evidence.append(evidence)
        made.claims.add(id=f"C-{item.id}", statement="done", criterion_ids=[item.id], evidence_ids=[evidence.id])
    return made


def _edit(path: Path, content: str | None) -> None:
    if content is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
