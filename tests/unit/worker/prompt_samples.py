"""A lease of every kind, and their prompts as golden files: `python -m tests.unit.worker.prompt_samples` writes them."""

from collections.abc import Mapping
from pathlib import Path

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import proof_pb2 as proofs
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.agent_pb2 import Lease
from pointsman.services.pipeline.domain.delegation import directive
from pointsman.worker.handoff import THE_PROMPT, HandoffFile, handoff_files
from pointsman.worker.prompt import prompt_for

FOLDER = Path("/handoff")
GOLDEN = Path(__file__).parents[2] / "data" / "prompts"
NONCE = "4f1d0c7a9be2365a"
INTENT = "mean() fails on an empty list; make it return 0"


def leases(text: str = "", nonce: str = NONCE) -> Mapping[str, Lease]:
    """One lease of every kind; `text` stands wherever somebody else's words may stand."""
    bundle, result, plan = coder_handoff(text), coder_result(text), plan_of(text)
    asked = text or INTENT
    research = work.ResearchSlot(id="callers", question=text or "Who calls mean() today?")
    remark = handoff.Feedback(key="no-test", statement=text or "T1 has no test")
    return {
        "plan": lease("PLAN", "PLAN", plan=work.PlanRequest(intent=asked, acceptance_criteria=criteria(text))),
        "patch": lease(
            "PATCH",
            "PLAN",
            plan=work.PlanRequest(
                intent=asked,
                current_plan=plan,
                reasons=[text or "T1 was rejected three times"],
                research=[report(text)],
                acceptance_criteria=criteria(text),
            ),
        ),
        "plan_answer": lease(
            "PLAN_ANSWER", "PLAN", plan=work.PlanRequest(intent=asked, current_plan=plan, feedback=[remark])
        ),
        "debate": lease("DEBATE", "DEBATE", debate=work.DebateRequest(intent=asked, plan=plan, round=1)),
        "research": lease("RESEARCH", "RESEARCH", research=work.ResearchRequest(intent=asked, slot=research)),
        "design": lease(
            "DESIGN", "DESIGN", design=work.DesignRequest(intent=asked, plan=plan, research=[report(text)])
        ),
        "stage_design": lease("STAGE", "DESIGN", stage=stage("ARCH", bundle, nonce)),
        "stage_code": failed_before(text, lease("STAGE", "CODE", stage=stage("DEV", bundle, nonce))),
        "stage_review": lease("STAGE", "REVIEW", stage=stage("REVIEW", bundle, "", result, finding(text))),
        "stage_test": lease("STAGE", "REVIEW", stage=stage("TEST", bundle, "", result)),
        "review": lease(
            "REVIEW", "REVIEW", review=work.ReviewRequest(handoff=bundle, coder_result=result, finding=finding(text))
        ),
    }


def lease(purpose: str, capability: str, **asked: object) -> Lease:
    """A lease of a purpose for a capability."""
    made = Lease(epoch=1, **asked)  # type: ignore[arg-type]
    made.assignment.id, made.assignment.run_id, made.assignment.attempt = "run_1.a1", "run_1", 1
    made.assignment.purpose = assignments.Purpose.Value(f"PURPOSE_{purpose}")
    made.assignment.repository.base_commit = "b" * 40
    made.assignment.capability = assignments.Capability.Value(f"CAPABILITY_{capability}")
    return made


def failed_before(text: str, made: Lease) -> Lease:
    """The same with an attempt that failed before."""
    made.assignment.earlier_failures.append(text or "the agent's command failed: it ended with exit code 1")
    return made


def stage(
    name: str,
    bundle: handoff.CoderHandoff,
    nonce: str,
    result: handoff.CoderResult | None = None,
    found: work.TaskFinding | None = None,
) -> work.StageRequest:
    """A stage as the pipeline service directs it."""
    return work.StageRequest(
        stage=name,
        pipeline_id="run_1/T1/2",
        node_context_json='{"node":{"stage":"' + name + '"}}',
        directive=directive(name, None, (), nonce or NONCE),
        nonce=nonce,
        handoff=bundle,
        coder_result=result,
        finding=found,
    )


def finding(text: str) -> work.TaskFinding:
    """What the verifier found about the work."""
    test = proofs.TestResult(id=text or "test_stats.py::test_empty", before=proofs.TEST_OUTCOME_FAILED, message=text)
    command = proofs.ProofCommand(command=["python3", "-m", "pytest", "-q"], adapter="pytest", executed=3, tests=[test])
    return work.TaskFinding(task_id="T1", accepted=True, proof=proofs.Proof(commands=[command]))


def coder_handoff(text: str) -> handoff.CoderHandoff:
    """The bundle of a task that was rejected once."""
    task = handoff.MasterTask(
        run_id="run_1",
        task_id=text[:128] or "T1",
        attempt=2,
        name=text or "Let mean() take an empty list",
        intent=text or INTENT,
        actions=[text or "return 0 for an empty list"],
        files=[text or "stats.py"],
        requirement=text or "mean([]) must not fail",
        rejections=[text or "C1 is not supported: 1 failed, 2 passed"],
        reflections=[text or "REVIEW: the empty list was forgotten"],
    )
    design = handoff.DetailDesign(design_md=handoff.Document(text=text or "# Design\n\nOne early return."))
    return handoff.CoderHandoff(
        master_task=task, detail_design=design, acceptance_criteria=criteria(text), research_bundle=[report(text)]
    )


def criteria(text: str) -> list[handoff.AcceptanceCriterion]:
    """One criterion with a command, one without."""
    command = [text] if text else ["python3", "-m", "pytest", "-q"]
    return [
        handoff.AcceptanceCriterion(
            id=text[:128] or "V1", statement=text or "the tests pass", verify_command=command, required=True
        ),
        handoff.AcceptanceCriterion(id="K2", statement=text or "it reads well"),
    ]


def report(text: str) -> handoff.ResearchReport:
    """What a researcher found."""
    return handoff.ResearchReport(
        agent_id="box-researcher",
        slot=text[:128] or "callers",
        summary_md=handoff.Document(text=text or "# Callers\n\nreport.py calls it."),
        memory_jsonl=handoff.Document(text='{"note": "report.py"}\n'),
        confidence=0.8,
    )


def coder_result(text: str) -> handoff.CoderResult:
    """What the coder handed in."""
    return handoff.CoderResult(
        claims=[handoff.Claim(id="C1", statement=text or "mean([]) is 0", criterion_ids=["V1"], evidence_ids=["E1"])],
        evidence=[handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_COMMAND, command=["true"], excerpt=text)],
        changed_files=[handoff.ChangedFile(path=text or "stats.py", change=handoff.FILE_CHANGE_MODIFIED)],
    )


def plan_of(text: str) -> work.Plan:
    """A plan of one task."""
    task = work.PlanTask(id="T1", name=text or "Let mean() take an empty list", acceptance_criteria=criteria(text))
    return work.Plan(tasks=[task], confidence=0.9)


def contents_of(made: Lease) -> list[HandoffFile]:
    """The files of a lease's folder."""
    return handoff_files(made, {})


def prompt_of(made: Lease) -> str:
    """The prompt of a lease."""
    return prompt_for(made, FOLDER, [THE_PROMPT, *contents_of(made)])


def write_golden_files() -> None:
    """Writes the prompts as they are now."""
    GOLDEN.mkdir(exist_ok=True)
    for name, made in leases().items():
        (GOLDEN / f"{name}.md").write_text(prompt_of(made))


if __name__ == "__main__":
    write_golden_files()
