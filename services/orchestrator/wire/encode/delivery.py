"""What a run delivers."""

from collections.abc import Sequence

from pointsman.api.handoff.v1 import delivery_pb2 as delivery
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.handoff.v1.proof_pb2 import Proof
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.engine.journal import Transition
from pointsman.services.chassis.rpc.paging import timestamp
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.enums import InternalEvent, State, TaskStatus
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.wire import enums
from pointsman.services.orchestrator.wire.encode.documents import RunDocuments, revive
from pointsman.services.orchestrator.wire.encode.runs import risk


def deliver(documents: RunDocuments, rows: Sequence[Transition]) -> delivery.Delivery:
    """What the user gets: how each state went, what was accepted, what is open, what to do next."""
    it, proofs = documents.run, _proofs(rows)
    message = delivery.Delivery(
        run_id=it.run_id,
        outcome=str(it.status),
        stage_results=[_stage_result(row) for row in rows if row.source != row.target and row.source],
        deliverables=[_deliverable(documents, task_id, proofs.get(task_id)) for task_id in _accepted(it)],
        open_risks=[risk(item) for item in it.risks],
        next_steps=_next_steps(it),
        accepted_commit=it.accepted_commit,
        grade=enums.GRADE.to_wire(it.grade),
    )
    if it.accepted_bundle:
        message.bundle.CopyFrom(revive(it.accepted_bundle, handoff.ArtifactRef()))
    return message


def _stage_result(row: Transition) -> delivery.StageResultSummary:
    return delivery.StageResultSummary(
        name=row.source, outcome=row.event, detail=f"{row.source} to {row.target}", ended_at=timestamp(row.at_us)
    )


def _accepted(it: Run) -> list[str]:
    return [task_id for task_id, task in it.tasks.items() if task.status is TaskStatus.ACCEPTED]


def _proofs(rows: Sequence[Transition]) -> dict[str, Proof]:
    """The last proof of each task, without what only its attempt shows."""
    found: dict[str, Proof] = {}
    for row in rows:
        if row.event == InternalEvent.WAVE_VERIFIED:
            report = revive(from_json(row.payload, events.WaveVerified).document, work.VerificationReport())
            found |= {one.task_id: one.proof for one in report.tasks if one.HasField("proof")}
    for proof in found.values():
        proof.ClearField("changed_files")
        for test in [test for command in proof.commands for test in command.tests]:
            test.ClearField("message")
    return found


def _deliverable(documents: RunDocuments, task_id: str, proof: Proof | None) -> delivery.Deliverable:
    made = documents.coder_result(task_id)
    return delivery.Deliverable(
        task_id=task_id,
        statement=documents.run.tasks[task_id].outline.name,
        claims=made.claims,
        changed_files=made.changed_files,
        commit=made.result_commit,
        grade=enums.GRADE.to_wire(documents.run.tasks[task_id].grade),
        proof_reused=documents.run.tasks[task_id].judgement.proof_reused,
        proof=proof,
    )


def _next_steps(it: Run) -> list[str]:
    steps = [f"look at the risk '{item.key}'" for item in it.risks]
    if it.accepted_commit:
        steps.append(f"merge {it.accepted_commit}")
    if it.status is not State.COMPLETE and it.epic_id:
        steps.append(f"the epic {it.epic_id} keeps the tasks that are left")
    return steps
