"""The merge queue: tasks in plan order on the accepted commit, each proven there, the failing ones left out."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.handoff.v1 import delivery_pb2 as delivery
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.handoff.v1.proof_pb2 import Grade
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.worker import Job, Surveyor, Verifier, Workspace
from pointsman.worker.git import Clone
from tests.unit.worker.repositories import clone_of, repository

CHECK = ("sh", "check.sh")
BASE = {
    "a": "1\n",
    "b": "1\n",
    "check.sh": "test ! -e broken\n",
    "README.md": "# hello\n",
    "test_x.py": "import pytest\n",
}


@dataclass(slots=True)
class Shelf:
    """The control plane as a verifier sees it: artifacts, and the run."""

    base: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)
    """What was put for operators and verifiers alone."""

    @property
    def artifacts(self) -> "Shelf":
        return self

    @property
    def runs(self) -> "RunsOf":
        return RunsOf(self.base)

    async def put(
        self, body: bytes, media_type: str, run_id: str = "", *, held_out: bool = False
    ) -> handoff.ArtifactRef:
        digest = hashlib.sha256(body).hexdigest()
        self.withheld |= {digest} if held_out else set()
        self.bodies[digest] = body
        return handoff.ArtifactRef(sha256=digest, size_bytes=len(body), media_type=media_type)

    async def get(self, artifact: handoff.ArtifactRef) -> bytes:
        return self.bodies[artifact.sha256]


@dataclass(frozen=True, slots=True)
class RunsOf:
    """One run."""

    base: str

    async def get(self, run_id: str) -> runs.Run:
        return runs.Run(id=run_id, repository=runs.Repository(id="repo", base_commit=self.base))

    async def delivery(self, run_id: str) -> delivery.Delivery:
        return delivery.Delivery(run_id=run_id)


@dataclass(slots=True)
class Yard:
    """A repository, a coder's clone of it and a verifier of its own."""

    base: str
    coder: Clone
    verifier: Verifier
    shelf: Shelf
    folder: Path

    async def task(self, task_id: str, files: dict[str, str], *, command: tuple[str, ...] = CHECK) -> work.VerifyTask:
        """A task whose coder changed these files and says that the check passes."""
        place = self.folder / f"tree-{task_id}"
        await self.coder.check_out(self.base, place)
        write(place, files)
        captured = await self.coder.capture(place, self.base, "coder")
        bundle = await self.shelf.put(await self.coder.make_bundle(self.base, captured.commit), "bundle")
        made = handoff.CoderResult(
            claims=[handoff.Claim(id="C", statement="ok", criterion_ids=["K"], evidence_ids=["E"])],
            evidence=[handoff.Evidence(id="E", kind=handoff.EVIDENCE_KIND_COMMAND, command=command)],
            base_commit=self.base,
            result_commit=captured.commit,
            tree_hash=captured.tree,
            bundle=bundle,
        )
        criterion = handoff.AcceptanceCriterion(id="K", statement="holds", verify_command=CHECK, required=True)
        return work.VerifyTask(task_id=task_id, acceptance_criteria=[criterion], coder_result=made)

    async def verify(
        self, *tasks: work.VerifyTask, standing: tuple[handoff.AcceptanceCriterion, ...] = ()
    ) -> work.VerificationReport:
        """The verifier's word on a wave."""
        request = work.VerifyRequest(accepted_commit=self.base, tasks=tasks, standing_criteria=standing)
        report = await self.verifier.verify(self.job(verify=request))
        assert isinstance(report, work.VerificationReport)
        return report

    def job(self, **given: Any) -> Job:
        """An assignment on the repository."""
        where = runs.Repository(id="repo", base_commit=self.base)
        assignment = assignments.Assignment(id="a1", run_id="r1", repository=where)
        return Job(self.shelf, "box-verifier", pb.Lease(assignment=assignment, epoch=1, **given), runs.Usage())  # type: ignore[arg-type]


def write(place: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (place / name).write_text(content)


@pytest.fixture
async def yard(tmp_path: Path) -> Yard:
    base = await repository(tmp_path / "user", BASE)
    coder = await clone_of(tmp_path / "user", tmp_path / "coder")
    workspace = Workspace(tmp_path / "verifier", {"repo": tmp_path / "user"})
    return Yard(base, coder, Verifier(workspace), Shelf(base), tmp_path)


async def test_tasks_that_hold_are_merged_in_order_and_handed_on_as_a_bundle(yard: Yard) -> None:
    report = await yard.verify(await yard.task("T1", {"a": "2\n"}), await yard.task("T2", {"b": "2\n"}))
    assert [task.accepted for task in report.tasks] == [True, True]
    elsewhere = await clone_of(yard.folder / "user", yard.folder / "elsewhere")
    await elsewhere.take_bundle(yard.shelf.bodies[report.bundle.sha256], report.accepted_commit)
    assert {file.path for file in await elsewhere.changed_files(yard.base, report.accepted_commit)} == {"a", "b"}
    assert await elsewhere.tree_of(report.accepted_commit) == report.tree_hash


async def test_a_task_that_breaks_the_accepted_tree_is_left_out(yard: Yard) -> None:
    report = await yard.verify(await yard.task("T1", {"broken": "x"}), await yard.task("T2", {"b": "2\n"}))
    assert [task.accepted for task in report.tasks] == [False, True]
    assert report.tasks[0].claims[0].status == work.CLAIM_STATUS_UNSUPPORTED
    assert "ended with 0, but here it ended with exit code 1" in report.tasks[0].claims[0].detail
    assert not report.tasks[0].criteria[0].passed


KEPT = handoff.AcceptanceCriterion(id="V1", statement="a is 1", verify_command=["grep", "-q", "1", "a"], required=True)


async def test_a_task_that_breaks_what_held_before_is_left_out_and_nobody_has_to_claim_it_again(yard: Yard) -> None:
    tasks = await yard.task("T1", {"a": "2\n"}), await yard.task("T2", {"b": "2\n"})
    report = await yard.verify(*tasks, standing=(KEPT,))
    assert [task.accepted for task in report.tasks] == [False, True]
    assert {item.criterion_id: item.passed for item in report.tasks[0].criteria} == {"K": True, "V1": False}


async def test_a_criterion_of_this_wave_stands_once_its_task_is_accepted(yard: Yard) -> None:
    first, second = await yard.task("T1", {"b": "2\n"}), await yard.task("T2", {"a": "2\n"})
    first.acceptance_criteria.append(KEPT)
    first.coder_result.claims[0].criterion_ids.append("V1")
    report = await yard.verify(first, second, standing=(KEPT,))
    assert [task.accepted for task in report.tasks] == [True, False]
    report = await yard.verify(second, first, standing=(KEPT,))
    assert [task.accepted for task in report.tasks] == [True, False]


async def test_each_task_is_proven_over_the_accepted_commit_that_it_is_merged_onto(yard: Yard) -> None:
    first, second = await yard.task("T1", {"a": "2\n"}), await yard.task("T2", {"b": "2\n"})
    report = await yard.verify(first, second)
    proofs = [finding.proof for finding in report.tasks]
    assert [proof.base_commit for proof in proofs] == [yard.base, first.coder_result.result_commit]
    assert [Grade.Name(proof.grade) for proof in proofs] == ["GRADE_UNBROKEN", "GRADE_UNBROKEN"]
    assert [[file.path for file in proof.changed_files] for proof in proofs] == [["a"], ["b"]]
    assert proofs[1].tree_hash == report.tree_hash
    assert proofs[0].isolation
    assert [tuple(command.command) for command in proofs[0].commands] == [CHECK]


async def test_who_edits_the_check_hides_nothing(yard: Yard) -> None:
    report = await yard.verify(await yard.task("T1", {"broken": "", "check.sh": "true\n"}))
    finding = report.tasks[0]
    assert not finding.accepted
    assert finding.proof.grade == Grade.GRADE_UNSPECIFIED
    assert [change.path for change in finding.proof.protected_changes] == ["check.sh"]
    assert any("with the base's tests" in reason for reason in finding.proof.reasons)
    assert report.accepted_commit == yard.base


async def test_what_the_verifier_ran_is_evidence_of_its_own(yard: Yard) -> None:
    report = await yard.verify(await yard.task("T1", {"a": "2\n"}))
    taken = report.tasks[0].criteria[0].evidence
    assert (taken.kind, tuple(taken.command), taken.exit_code) == (handoff.EVIDENCE_KIND_COMMAND, CHECK, 0)
    assert taken.tree_hash == report.tree_hash
    assert taken.digest == hashlib.sha256(b"").hexdigest()


async def test_a_conflict_rejects_the_later_task_and_names_the_files(yard: Yard) -> None:
    report = await yard.verify(await yard.task("T1", {"a": "2\n"}), await yard.task("T2", {"a": "3\n"}))
    assert [task.accepted for task in report.tasks] == [True, False]
    assert list(report.tasks[1].conflicts) == ["a"]


async def test_a_command_of_the_author_never_suffices_for_a_required_criterion(yard: Yard) -> None:
    task = await yard.task("T1", {"a": "2\n"}, command=("true",))
    report = await yard.verify(task)
    assert not report.tasks[0].accepted
    assert "is no command that the verifier runs" in report.tasks[0].claims[0].detail


async def test_a_required_criterion_without_a_claim_is_not_accepted(yard: Yard) -> None:
    task = await yard.task("T1", {"a": "2\n"})
    task.coder_result.claims[0].ClearField("criterion_ids")
    assert not (await yard.verify(task)).tasks[0].accepted


async def test_work_with_another_tree_than_was_said_is_refused(yard: Yard) -> None:
    task = await yard.task("T1", {"a": "2\n"})
    task.coder_result.tree_hash = "0" * 40
    report = await yard.verify(task)
    assert not report.tasks[0].accepted
    assert "the work's tree is" in report.tasks[0].claims[0].detail


async def test_work_without_its_bundle_is_refused(yard: Yard) -> None:
    task = await yard.task("T1", {"a": "2\n"})
    task.coder_result.ClearField("bundle")
    report = await yard.verify(task)
    assert "no bundle" in report.tasks[0].claims[0].detail
    assert report.accepted_commit == yard.base


async def test_the_users_repository_is_never_written_to(yard: Yard) -> None:
    before = sorted(str(path) for path in (yard.folder / "user").rglob("*"))
    await yard.verify(await yard.task("T1", {"a": "2\n"}))
    assert sorted(str(path) for path in (yard.folder / "user").rglob("*")) == before


async def test_a_survey_has_all_four_files_and_finds_the_tests(yard: Yard) -> None:
    surveyor = Surveyor(Workspace(yard.folder / "surveyor", {"repo": yard.folder / "user"}))
    request = work.ResearchRequest(slot=work.ResearchSlot(id="survey", question="what is here?"))
    report = await surveyor.research(yard.job(research=request))
    assert "5 files" in report.summary_md.text
    assert "# hello" in report.summary_md.text
    assert "python3 -m pytest -q" in report.summary_md.text
    assert report.memory_jsonl.text.startswith('{"agent_id": "box-verifier"')
    assert report.analysis_meta.text
    assert report.operations.text
    assert report.is_survey


async def test_a_proof_has_the_ports_of_its_project(tmp_path: Path) -> None:
    files = {
        "pointsman.toml": "[workspace]\nports = 2\n",
        "check.sh": 'test "$POINTSMAN_PORT_1" -gt 1024\n',
        "a": "1\n",
    }
    base = await repository(tmp_path / "user", files)
    coder = await clone_of(tmp_path / "user", tmp_path / "coder")
    workspace = Workspace(tmp_path / "verifier", {"repo": tmp_path / "user"})
    yard = Yard(base, coder, Verifier(workspace), Shelf(base), tmp_path)
    assert (await yard.verify(await yard.task("T1", {"a": "2\n"}))).tasks[0].accepted
