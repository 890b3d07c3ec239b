"""The verifier: a merge queue on the accepted commit; it runs every criterion and all evidence itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.handoff.v1.handoff_pb2 import AcceptanceCriterion
from pointsman.sandbox import CommandResult, Limits, SandboxSpec, clean_environment, run
from pointsman.worker import evidence_check
from pointsman.worker.commit_message import merge_message
from pointsman.worker.evidence import command_evidence
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.sdk import Job
from pointsman.worker.workspace import AssignmentFolders, CommitRef, Workspace, fetch_commit, fetch_result

BUNDLE_TYPE = "application/x-git-bundle"
DETAIL_BYTES = 2000
LIMITS = Limits(seconds=600.0, output_bytes=2 * 1024 * 1024)


@dataclass(slots=True)
class _Runner:
    """Runs commands in one tree, each once."""

    tree: Path
    scratch: Path
    limits: Limits
    ended: dict[tuple[str, ...], CommandResult] = field(default_factory=dict)

    async def run(self, command: Sequence[str]) -> CommandResult:
        """Runs a command, or returns its earlier result."""
        key = tuple(command)
        if key not in self.ended:
            environment = clean_environment(
                {"HOME": str(self.scratch), "TMPDIR": str(self.scratch), "PYTHONDONTWRITEBYTECODE": "1"}
            )
            spec = SandboxSpec(key, self.tree, environment, (self.tree, self.scratch), limits=self.limits)
            self.ended[key] = await run(spec)
        return self.ended[key]


@dataclass(frozen=True, slots=True)
class _MergeTarget:
    """Where a task is merged and verified: the accepted commit, folders, and the criteria that hold already."""

    accepted: str
    tree: Path
    scratch: Path
    standing: Sequence[AcceptanceCriterion]


class Verifier:
    """Merges the tasks of a wave in their order, verifies each on the merged tree, and leaves out what fails."""

    def __init__(self, workspace: Workspace, limits: Limits = LIMITS) -> None:
        self._workspace = workspace
        self._limits = limits

    async def verify(self, job: Job) -> work.VerificationReport:
        """Verifies a wave: the new accepted commit, and a finding for each task."""
        async with self._workspace.folders(job) as folders:
            if not job.assignment.repository.id:
                return await self._without_repository(job, folders)
            clone = await self._workspace.clone_for(job)
            accepted = job.work.accepted_commit
            if not await clone.has(accepted):
                base = job.assignment.repository.base_commit
                await fetch_commit(job.client, clone, CommitRef(accepted, job.work.accepted_bundle), base)
            findings: list[work.TaskFinding] = []
            for number, task in enumerate(job.work.tasks):
                place = _MergeTarget(
                    accepted, folders.tree / str(number), folders.scratch, standing(job.work, findings)
                )
                finding, accepted = await self._merge_and_verify(job, clone, task, place)
                findings.append(finding)
            return await _report(job, clone, findings, accepted)

    async def _merge_and_verify(
        self, job: Job, clone: Clone, task: work.VerifyTask, place: _MergeTarget
    ) -> tuple[work.TaskFinding, str]:
        """Merges and verifies one task; the accepted commit moves only when everything holds."""
        accepted, made = place.accepted, task.coder_result
        try:
            await fetch_result(job, clone, made)
            merged = await clone.merge(accepted, made.result_commit, merge_message(job.assignment.run_id, task.task_id))
        except GitFailed as error:
            return _refused(task, str(error)), accepted
        if merged.conflicts:
            return _refused(task, "it conflicts with work accepted before", merged.conflicts), accepted
        await clone.check_out(merged.commit, place.tree)
        base = made.base_commit or accepted
        where = evidence_check.VerificationTarget(
            place.tree,
            await clone.tree_of(merged.commit),
            evidence_check.diff_digest(await clone.diff(base, made.result_commit)),
            frozenset(tuple(item.verify_command) for item in task.acceptance_criteria if item.verify_command),
            _Runner(place.tree, place.scratch, self._limits).run,
        )
        finding = await _verify_task(task, where, place.standing)
        return finding, merged.commit if finding.accepted else accepted

    async def _without_repository(self, job: Job, folders: AssignmentFolders) -> work.VerificationReport:
        """Verifies work without a repository by the commands of its criteria alone, in an empty folder."""
        folders.tree.mkdir()
        findings = []
        for task in job.work.tasks:
            commands = frozenset(tuple(item.verify_command) for item in task.acceptance_criteria if item.verify_command)
            runner = _Runner(folders.tree, folders.scratch, self._limits)
            findings.append(
                await _verify_task(task, evidence_check.VerificationTarget(folders.tree, "", "", commands, runner.run))
            )
        return work.VerificationReport(tasks=findings)


def standing(request: work.VerifyRequest, findings: Sequence[work.TaskFinding]) -> list[AcceptanceCriterion]:
    """The user's criteria that hold already: those met before this wave, and those of the wave's accepted tasks."""
    accepted = {finding.task_id for finding in findings if finding.accepted}
    ahead = {item.id for task in request.tasks if task.task_id not in accepted for item in task.acceptance_criteria}
    return [item for item in request.standing_criteria if item.id not in ahead]


async def _verify_task(
    task: work.VerifyTask,
    target: evidence_check.VerificationTarget,
    standing_criteria: Sequence[AcceptanceCriterion] = (),
) -> work.TaskFinding:
    """Verifies one task; files and diffs are checked before any command runs, because commands can change files."""
    made = task.coder_result
    unrepeatable = [item for item in made.evidence if item.kind not in evidence_check.REPEATABLE_KINDS]
    repeatable = [item for item in made.evidence if item.kind in evidence_check.REPEATABLE_KINDS]
    found = {item.id: await evidence_check.check_evidence(item, target) for item in unrepeatable}
    criteria = [await _criterion(item, target) for item in task.acceptance_criteria if item.verify_command]
    standing_findings = [await _criterion(item, target) for item in standing_criteria]
    found |= {item.id: await evidence_check.check_evidence(item, target) for item in repeatable}
    failed = {item.criterion_id for item in criteria if not item.passed}
    claims = [evidence_check.check_claim(claim, found, failed) for claim in made.claims]
    finding = work.TaskFinding(task_id=task.task_id, claims=claims, criteria=[*criteria, *standing_findings])
    finding.accepted = _holds(task, finding) and all(item.passed for item in standing_findings)
    return finding


async def _criterion(
    criterion: AcceptanceCriterion, target: evidence_check.VerificationTarget
) -> work.CriterionFinding:
    ended = await target.run(criterion.verify_command)
    detail = ended.excerpt(evidence_check.DETAIL_LENGTH)
    if not ended.ok:
        detail = f"`{' '.join(criterion.verify_command)}`: {ended.reason}\n{detail}"[:DETAIL_BYTES]
    taken = command_evidence(criterion.id, criterion.verify_command, ended.exit_code, ended.output, target.tree_hash)
    taken.digest = ended.digest
    return work.CriterionFinding(criterion_id=criterion.id, passed=ended.ok, detail=detail, evidence=taken)


def _holds(task: work.VerifyTask, finding: work.TaskFinding) -> bool:
    """Whether no claim lacks support or evidence, and every required criterion passed and has a supported claim."""
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
