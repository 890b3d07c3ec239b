"""The verifier: a merge queue on the accepted commit; it runs every criterion and all evidence itself."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointsman._shared.excerpt import excerpt
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.handoff.v1.handoff_pb2 import AcceptanceCriterion
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.project import ProjectFile
from pointsman.project.includes import IncludeTooLarge
from pointsman.project.setup_run import SetupFailed
from pointsman.proof.execution import CommandRunner, Furnish, Furnishing, require_services
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover
from pointsman.proof.snapshot import Repository
from pointsman.proof.verdict import Decision, Wishes
from pointsman.sandbox import CommandResult, Limits, SandboxSpec, available_level, clean_environment, run
from pointsman.worker import evidence_check
from pointsman.worker.base_project import project_at
from pointsman.worker.commit_message import merge_message
from pointsman.worker.delivery_terms import NO_TERMS, Terms, keep_output, read_terms
from pointsman.worker.evidence import command_evidence
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.proof_environment import (
    DeliveryNotInstallable,
    ProofBase,
    ProofEnvironments,
    pairs_after_seconds,
)
from pointsman.worker.proof_messages import proof_attributes, proof_message
from pointsman.worker.sdk import GiveUp, Job, log
from pointsman.worker.stage_verdict import stage_verdict
from pointsman.worker.workspace import AssignmentFolders, CommitRef, Workspace, fetch_commit, fetch_result

BUNDLE_TYPE = "application/x-git-bundle"
DETAIL_BYTES = 2000
LIMITS = Limits(seconds=600.0, output_bytes=2 * 1024 * 1024)


@dataclass(slots=True)
class _Runner:
    """Runs commands in one tree, each once; what a proof ran already is not run again."""

    tree: Path
    scratch: Path
    limits: Limits
    ended: dict[tuple[str, ...], CommandResult] = field(default_factory=dict)
    furnishing: Furnishing = field(default_factory=Furnishing)

    async def run(self, command: Sequence[str]) -> CommandResult:
        """Runs a command, or returns its earlier result."""
        key = tuple(command)
        if key not in self.ended:
            self.ended[key] = await self.run_anew(command)
        return self.ended[key]

    async def run_anew(self, command: Sequence[str]) -> CommandResult:
        """Runs a command in the tree, whatever ran before."""
        own = {"HOME": str(self.scratch), "TMPDIR": str(self.scratch), "PYTHONDONTWRITEBYTECODE": "1"}
        first = {"PYTHONPATH": os.pathsep.join(map(str, self.furnishing.python_path))}
        spec = SandboxSpec(
            tuple(command),
            self.tree,
            clean_environment({**own, **(first if first["PYTHONPATH"] else {}), **self.furnishing.environment}),
            writable=(self.tree, self.scratch, *self.furnishing.writable),
            readable=self.furnishing.readable,
            hidden=self.furnishing.hidden,
            network=self.furnishing.network,
            limits=self.limits,
            services=self.furnishing.services,
        )
        ended = await run(spec)
        require_services(ended)
        return ended


@dataclass(frozen=True, slots=True)
class _MergeTarget:
    """Where a task is merged and verified: the accepted commit, folders, and the criteria that hold already."""

    accepted: str
    folder: Path
    scratch: Path
    standing: Sequence[AcceptanceCriterion]
    project: ProjectFile
    """As the run's base has it: no task of the run changes how it is proven."""
    furnish: Furnish
    """Furnishes sandboxes for trees on the accepted commit."""
    terms: Terms = NO_TERMS
    """What the proof has to show besides its commands."""


class Verifier:
    """Merges the tasks of a wave in their order, verifies each on the merged tree, and leaves out what fails."""

    def __init__(self, workspace: Workspace, limits: Limits = LIMITS) -> None:
        self._workspace = workspace
        self._limits = limits
        self._baselines = Baselines()

    async def verify(self, job: Job) -> work.VerificationReport | work.StageResult:
        """Verifies a wave: the new accepted commit, and a finding for each task; or one task in its TEST stage."""
        is_stage = job.assignment.purpose == assignments.PURPOSE_STAGE
        request = job.work.verify if is_stage else job.work
        async with self._workspace.folders(job) as folders:
            if not job.assignment.repository.id:
                findings = await self._without_repository(request, folders)
                return stage_verdict(findings[0]) if is_stage else work.VerificationReport(tasks=findings)
            clone = await self._workspace.clone_for(job)
            findings, accepted = await self._merge_all(job, request, folders, clone)
            job.attributes |= proof_attributes(findings)
            return stage_verdict(findings[0]) if is_stage else await _report(job, clone, findings, accepted)

    async def _merge_all(
        self, job: Job, request: work.VerifyRequest, folders: AssignmentFolders, clone: Clone
    ) -> tuple[list[work.TaskFinding], str]:
        """Merges and verifies the tasks of a request one after the other; the findings and the last accepted commit."""
        accepted = request.accepted_commit
        if not await clone.has(accepted):
            base = job.assignment.repository.base_commit
            await fetch_commit(job.client, clone, CommitRef(accepted, request.accepted_bundle), base)
        project = await project_at(clone.path, await _run_base(job) or accepted)
        findings: list[work.TaskFinding] = []
        terms = await read_terms(job, request)
        job.attributes |= {"pointsman.proof.fixes": len(terms.fixes), "pointsman.proof.held_out": len(terms.held_out)}
        for number, task in enumerate(request.tasks):
            is_last = number == len(request.tasks) - 1 and all(finding.accepted for finding in findings)
            furnish = self._furnisher(job, clone, accepted, project)
            place = _MergeTarget(
                accepted,
                folders.tree / str(number),
                folders.scratch,
                standing(request, findings),
                project,
                furnish,
                terms if is_last else NO_TERMS,
            )
            finding, accepted = await self._merge_and_verify(job, clone, task, place)
            findings.append(finding)
        return findings, accepted

    async def _merge_and_verify(
        self, job: Job, clone: Clone, task: work.VerifyTask, place: _MergeTarget
    ) -> tuple[work.TaskFinding, str]:
        """Merges and verifies one task; the accepted commit moves only when everything holds."""
        accepted, made = place.accepted, task.coder_result
        try:
            await fetch_result(job, clone, made)
            if task.first.result_commit:
                await fetch_result(job, clone, task.first)
            merged = await clone.merge(accepted, made.result_commit, merge_message(job.assignment.run_id, task.task_id))
        except GitFailed as error:
            return _refused(task, str(error)), accepted
        if merged.conflicts:
            return _refused(task, "it conflicts with work accepted before", merged.conflicts), accepted
        key = await _key(clone, task, place, merged.commit)
        if earlier := _reusable(task, key):
            return earlier, merged.commit
        try:
            finding = await self._verify_merged(job, clone, task, place, merged.commit)
            finding.proof.key = key if finding.HasField("proof") else ""
        except DeliveryNotInstallable as error:
            return _refused(task, str(error)), accepted
        except (SetupFailed, IncludeTooLarge) as error:
            raise GiveUp(f"the tree cannot be set up for its proof: {error}", permanent=True) from None
        return finding, merged.commit if finding.accepted else accepted

    def _furnisher(self, job: Job, clone: Clone, accepted: str, project: ProjectFile) -> Furnish:
        """Furnishes sandboxes with the environment that set-up makes for the accepted commit."""
        base = ProofBase(Repository(clone.path), accepted, project, self._workspace.user_folder(job))
        return ProofEnvironments(self._workspace.root, self._workspace.private_places).furnisher(base, log.info)

    async def _verify_merged(
        self, job: Job, clone: Clone, task: work.VerifyTask, place: _MergeTarget, merged: str
    ) -> work.TaskFinding:
        """Proves the merged commit, then checks the evidence on it, in the same environment."""
        proof = await self._prove(clone, task, place, merged)
        accepted, made = place.accepted, task.coder_result
        async with place.furnish(await Repository(clone.path).snapshot(merged)) as furnishing:
            tree = furnishing.tree or place.folder / "evidence"
            await clone.check_out(merged, tree)
            furnishing.prepare()
            runner = _Runner(tree, place.scratch, self._limits, _delivered_results(proof), furnishing)
            where = evidence_check.VerificationTarget(
                tree,
                await clone.tree_of(merged),
                evidence_check.diff_digest(await clone.diff(made.base_commit or accepted, made.result_commit)),
                frozenset(tuple(item.verify_command) for item in task.acceptance_criteria if item.verify_command),
                runner.run,
                runner.run_anew,
                _excused(proof),
            )
            finding = await _verify_task(task, where, place.standing, proof)
        if proof is not None:
            changed = await clone.changed_files(accepted, merged)
            finding.proof.CopyFrom(proof_message(proof, accepted, changed))
            if output := await keep_output(job, proof):
                finding.proof.held_out_output.CopyFrom(output)
        if finding.accepted and proof is not None:
            self._baselines.keep_accepted(proof)
        return finding

    async def _prove(self, clone: Clone, task: work.VerifyTask, place: _MergeTarget, merged: str) -> Proof | None:
        """The proof of the merged commit over the accepted one, by the commands of all criteria."""
        request = _proof_request(task, place, merged)
        if not request.commands:
            return None
        repository = Repository(clone.path)
        pairs_after = pairs_after_seconds(place.project)
        runner = CommandRunner(repository, place.folder / "proof", place.furnish, pairs_after)
        return await Prover(repository, runner, self._baselines).prove(request)

    async def _without_repository(
        self, request: work.VerifyRequest, folders: AssignmentFolders
    ) -> list[work.TaskFinding]:
        """Verifies work without a repository by the commands of its criteria alone, in an empty folder."""
        folders.tree.mkdir()
        findings = []
        for task in request.tasks:
            commands = frozenset(tuple(item.verify_command) for item in task.acceptance_criteria if item.verify_command)
            runner = _Runner(folders.tree, folders.scratch, self._limits)
            target = evidence_check.VerificationTarget(folders.tree, "", "", commands, runner.run, runner.run_anew)
            findings.append(await _verify_task(task, target))
        return findings


def _proof_request(task: work.VerifyTask, place: _MergeTarget, merged: str) -> ProofRequest:
    """What is to be proven about a merged commit; without commands there is no proof."""
    criteria, proof = [*task.acceptance_criteria, *place.standing], place.project.proof
    return ProofRequest(
        base=place.accepted,
        delivered=merged,
        commands=tuple(dict.fromkeys(tuple(item.verify_command) for item in criteria if item.verify_command)),
        protect=proof.protect,
        wishes=Wishes(place.terms.fixes, task.tests_may_change, tuple(place.terms.held_out)),
        held_out=place.terms.held_out,
        repeat=proof.repeat,
        first=(task.first.base_commit, task.first.result_commit) if task.first.result_commit else None,
    )


async def _key(clone: Clone, task: work.VerifyTask, place: _MergeTarget, merged: str) -> str:
    """Digest of everything that the finding about a merged commit depends on; its trees stand for its commits."""
    made, request = task.coder_result, _proof_request(task, place, merged)
    trees = [await clone.tree_of(commit) for commit in (place.accepted, merged)]
    said = (*task.acceptance_criteria, *place.standing, *made.claims, *made.evidence)
    facts = (
        *trees,
        repr((request.commands, request.protect, request.repeat, request.wishes)),
        place.terms.digest,
        task.first.tree_hash,
        str(available_level()),
        *(item.SerializeToString(deterministic=True).hex() for item in said),
    )
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _reusable(task: work.VerifyTask, key: str) -> work.TaskFinding | None:
    """What the TEST stage found, where it held and was about the same in every respect."""
    if not task.earlier.accepted or task.earlier.proof.key != key:
        return None
    finding = work.TaskFinding()
    finding.CopyFrom(task.earlier)
    finding.proof.reused = True
    return finding


def standing(request: work.VerifyRequest, findings: Sequence[work.TaskFinding]) -> list[AcceptanceCriterion]:
    """The user's criteria that hold already: those met before this wave, and those of the wave's accepted tasks."""
    accepted = {finding.task_id for finding in findings if finding.accepted}
    ahead = {item.id for task in request.tasks if task.task_id not in accepted for item in task.acceptance_criteria}
    return [item for item in request.standing_criteria if item.id not in ahead]


def _delivered_results(proof: Proof | None) -> dict[tuple[str, ...], CommandResult]:
    """What the proof's commands did on the delivered tree."""
    return {facts.base.command: facts.delivered.result for facts in proof.commands} if proof else {}


def _excused(proof: Proof | None) -> frozenset[tuple[str, ...]]:
    """Commands that hold although they ended with another exit code than 0: all their red tests were red before."""
    if proof is None:
        return frozenset()
    return frozenset(command for command, failures in proof.failures.items() if not failures)


async def _verify_task(
    task: work.VerifyTask,
    target: evidence_check.VerificationTarget,
    standing_criteria: Sequence[AcceptanceCriterion] = (),
    proof: Proof | None = None,
) -> work.TaskFinding:
    """Verifies one task; files and diffs are checked before any command runs, because commands can change files."""
    made = task.coder_result
    unrepeatable = [item for item in made.evidence if item.kind not in evidence_check.REPEATABLE_KINDS]
    repeatable = [item for item in made.evidence if item.kind in evidence_check.REPEATABLE_KINDS]
    found = {item.id: await evidence_check.check_evidence(item, target) for item in unrepeatable}
    criteria = [await _criterion(item, target, proof) for item in task.acceptance_criteria if item.verify_command]
    standing_findings = [await _criterion(item, target, proof) for item in standing_criteria]
    if proof is None or proof.commands or not proof.verdict.reasons:
        found |= {item.id: await evidence_check.check_evidence(item, target) for item in repeatable}
    failed = {item.criterion_id for item in criteria if not item.passed}
    claims = [evidence_check.check_claim(claim, found, failed) for claim in made.claims]
    finding = work.TaskFinding(task_id=task.task_id, claims=claims, criteria=[*criteria, *standing_findings])
    refused = proof is not None and proof.verdict.decision is Decision.REFUSED
    finding.accepted = not refused and _holds(task, finding) and all(item.passed for item in standing_findings)
    return finding


async def _criterion(
    criterion: AcceptanceCriterion, target: evidence_check.VerificationTarget, proof: Proof | None
) -> work.CriterionFinding:
    """A criterion by the proof of its command; without a repository by its exit code."""
    command = tuple(criterion.verify_command)
    if proof is not None and command not in proof.failures:
        why = "; ".join(proof.verdict.reasons)[:DETAIL_BYTES]
        return work.CriterionFinding(criterion_id=criterion.id, passed=False, detail=why)
    ended = await target.run(command)
    failures = proof.failures[command] if proof is not None else (() if ended.ok else (ended.reason,))
    detail = excerpt(ended.output.decode(errors="replace").replace("\0", ""), evidence_check.DETAIL_LENGTH).strip()
    if failures:
        why = "; ".join((*failures, *filter(None, (ended.denied,))))
        detail = f"`{' '.join(command)}`: {why}\n{detail}"[:DETAIL_BYTES]
    taken = command_evidence(criterion.id, command, ended.exit_code, ended.output, target.tree_hash)
    taken.digest = ended.digest
    return work.CriterionFinding(criterion_id=criterion.id, passed=not failures, detail=detail, evidence=taken)


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


async def _run_base(job: Job) -> str:
    """The commit that the run started from."""
    return (await job.client.runs.get(job.assignment.run_id)).repository.base_commit


async def _report(
    job: Job, clone: Clone, findings: Sequence[work.TaskFinding], accepted: str
) -> work.VerificationReport:
    """The findings with a bundle from the run's base to the new accepted commit."""
    run_id = job.assignment.run_id
    base = await _run_base(job) or job.work.accepted_commit
    body = await clone.make_bundle(base, accepted)
    bundle = await job.client.artifacts.put(body, BUNDLE_TYPE, run_id) if body else None
    return work.VerificationReport(
        tasks=findings, accepted_commit=accepted, tree_hash=await clone.tree_of(accepted), bundle=bundle
    )
