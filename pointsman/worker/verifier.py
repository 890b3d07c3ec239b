"""The verifier: a merge queue on the accepted commit that believes nothing it has not run itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.handoff.v1.handoff_pb2 import AcceptanceCriterion
from pointsman.worker import evidence_check
from pointsman.worker.containment import Ended, Limits, Task, clean_environment, run
from pointsman.worker.evidence import command_evidence
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.sdk import Job
from pointsman.worker.workspace import Bench, CommitRef, Workshop, take_commit, take_work

BUNDLE_TYPE = "application/x-git-bundle"
DETAIL_BYTES = 2000
LIMITS = Limits(seconds=600.0, output_bytes=2 * 1024 * 1024)


@dataclass(slots=True)
class _Runner:
    """Runs commands in one tree, each once."""

    tree: Path
    scratch: Path
    limits: Limits
    ended: dict[tuple[str, ...], Ended] = field(default_factory=dict)

    async def run(self, command: Sequence[str]) -> Ended:
        """How a command ends here."""
        key = tuple(command)
        if key not in self.ended:
            environment = clean_environment(
                {"HOME": str(self.scratch), "TMPDIR": str(self.scratch), "PYTHONDONTWRITEBYTECODE": "1"}
            )
            task = Task(key, self.tree, environment, (self.tree, self.scratch), limits=self.limits)
            self.ended[key] = await run(task)
        return self.ended[key]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a task is merged and proven: the commit so far, folders, and what holds already."""

    accepted: str
    tree: Path
    scratch: Path
    standing: Sequence[AcceptanceCriterion]


class Verifier:
    """Merges a wave's tasks in their order, proves each on the tree that it makes, and leaves out what fails."""

    def __init__(self, workshop: Workshop, limits: Limits = LIMITS) -> None:
        self._workshop = workshop
        self._limits = limits

    async def verify(self, job: Job) -> work.VerificationReport:
        """The new accepted commit, and what was found about every task."""
        async with self._workshop.bench(job) as bench:
            if not job.assignment.repository.id:
                return await self._without_repository(job, bench)
            clone = await self._workshop.clone_for(job)
            accepted = job.work.accepted_commit
            if not await clone.has(accepted):
                base = job.assignment.repository.base_commit
                await take_commit(job.client, clone, CommitRef(accepted, job.work.accepted_bundle), base)
            findings: list[work.TaskFinding] = []
            for number, task in enumerate(job.work.tasks):
                place = _Place(accepted, bench.tree / str(number), bench.scratch, standing(job.work, findings))
                finding, accepted = await self._task(job, clone, task, place)
                findings.append(finding)
            return await _report(job, clone, findings, accepted)

    async def _task(self, job: Job, clone: Clone, task: work.VerifyTask, place: _Place) -> tuple[work.TaskFinding, str]:
        """Merge and prove one task; the accepted commit moves only when everything holds."""
        accepted, made = place.accepted, task.coder_result
        try:
            await take_work(job, clone, made)
            merged = await clone.merge(accepted, made.result_commit, f"accept {task.task_id}")
        except GitFailed as error:
            return _refused(task, str(error)), accepted
        if merged.conflicts:
            return _refused(task, "it conflicts with work accepted before", merged.conflicts), accepted
        await clone.check_out(merged.commit, place.tree)
        base = made.base_commit or accepted
        where = evidence_check.Ground(
            place.tree,
            await clone.tree_of(merged.commit),
            evidence_check.digest_of(await clone.diff(base, made.result_commit)),
            frozenset(tuple(item.verify_command) for item in task.acceptance_criteria if item.verify_command),
            _Runner(place.tree, place.scratch, self._limits).run,
        )
        finding = await _prove(task, where, place.standing)
        return finding, merged.commit if finding.accepted else accepted

    async def _without_repository(self, job: Job, bench: Bench) -> work.VerificationReport:
        """Work without a repository is proven by its criteria's commands alone, in an empty folder."""
        bench.tree.mkdir()
        findings = []
        for task in job.work.tasks:
            commands = frozenset(tuple(item.verify_command) for item in task.acceptance_criteria if item.verify_command)
            runner = _Runner(bench.tree, bench.scratch, self._limits)
            findings.append(await _prove(task, evidence_check.Ground(bench.tree, "", "", commands, runner.run)))
        return work.VerificationReport(tasks=findings)


def standing(request: work.VerifyRequest, findings: Sequence[work.TaskFinding]) -> list[AcceptanceCriterion]:
    """The user's criteria that hold by now: those met before this wave, and those of the wave's accepted tasks."""
    accepted = {finding.task_id for finding in findings if finding.accepted}
    ahead = {item.id for task in request.tasks if task.task_id not in accepted for item in task.acceptance_criteria}
    return [item for item in request.standing_criteria if item.id not in ahead]


async def _prove(
    task: work.VerifyTask, ground: evidence_check.Ground, standing_ones: Sequence[AcceptanceCriterion] = ()
) -> work.TaskFinding:
    """Files and diffs are looked at before anything runs, because commands can change files."""
    made = task.coder_result
    still = [item for item in made.evidence if item.kind not in evidence_check.RUN_AGAIN]
    moving = [item for item in made.evidence if item.kind in evidence_check.RUN_AGAIN]
    found = {item.id: await evidence_check.judge(item, ground) for item in still}
    criteria = [await _criterion(item, ground) for item in task.acceptance_criteria if item.verify_command]
    kept = [await _criterion(item, ground) for item in standing_ones]
    found |= {item.id: await evidence_check.judge(item, ground) for item in moving}
    failed = {item.criterion_id for item in criteria if not item.passed}
    claims = [evidence_check.judge_claim(claim, found, failed) for claim in made.claims]
    finding = work.TaskFinding(task_id=task.task_id, claims=claims, criteria=[*criteria, *kept])
    finding.accepted = _holds(task, finding) and all(item.passed for item in kept)
    return finding


async def _criterion(criterion: AcceptanceCriterion, ground: evidence_check.Ground) -> work.CriterionFinding:
    ended = await ground.run(criterion.verify_command)
    detail = ended.excerpt(evidence_check.DETAIL_LENGTH)
    if not ended.ok:
        detail = f"`{' '.join(criterion.verify_command)}`: {ended.reason}\n{detail}"[:DETAIL_BYTES]
    taken = command_evidence(criterion.id, criterion.verify_command, ended.exit_code, ended.output, ground.tree_hash)
    taken.digest = ended.digest
    return work.CriterionFinding(criterion_id=criterion.id, passed=ended.ok, detail=detail, evidence=taken)


def _holds(task: work.VerifyTask, finding: work.TaskFinding) -> bool:
    """No claim is a lie, no command that must pass fails, and every required criterion has a supported claim."""
    if any(claim.status in (evidence_check.UNSUPPORTED, evidence_check.MISSING) for claim in finding.claims):
        return False
    passed = {item.criterion_id for item in finding.criteria if item.passed}
    supported = {claim.claim_id for claim in finding.claims if claim.status == evidence_check.SUPPORTED}
    covered = {c for claim in task.coder_result.claims if claim.id in supported for c in claim.criterion_ids}
    required = [item for item in task.acceptance_criteria if item.required]
    return all(item.id in covered and (not item.verify_command or item.id in passed) for item in required)


def _refused(task: work.VerifyTask, why: str, conflicts: Sequence[str] = ()) -> work.TaskFinding:
    claims = [
        work.ClaimFinding(claim_id=claim.id, status=evidence_check.STALE, detail=why[: evidence_check.DETAIL_LENGTH])
        for claim in task.coder_result.claims
    ]
    return work.TaskFinding(task_id=task.task_id, conflicts=conflicts[:256], claims=claims)


async def _report(
    job: Job, clone: Clone, findings: Sequence[work.TaskFinding], accepted: str
) -> work.VerificationReport:
    """The findings with a bundle from the run's base to the new accepted commit."""
    run_id = job.assignment.run_id
    base = (await job.client.runs.get(run_id)).repository.base_commit or job.work.accepted_commit
    body = await clone.make_bundle(base, accepted)
    bundle = await job.client.artifacts.put(body, BUNDLE_TYPE, run_id) if body else None
    return work.VerificationReport(
        tasks=findings, accepted_commit=accepted, tree_hash=await clone.tree_of(accepted), bundle=bundle
    )
