"""The prompt of an agent: the task, and which output files it has to write."""

from pathlib import Path

from pointsman.api.handoff.v1.handoff_pb2 import CoderHandoff
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.agent_pb2 import Lease

CODER = """\
Work in the current folder; it is a git working tree made for you alone. Change files there and nowhere else. No commit is needed.

Before you end, leave three files in {handoff}:

- evidence.json: a list of what can be looked at again. Take it with `pointsman evidence run -- COMMAND …`, which runs the
  command and writes the entry (id, kind COMMAND, command, exit_code, digest, excerpt, tree_hash). Other kinds: FILE (path, digest), NOTE (excerpt).
- claims.json: a list of {{"id", "statement", "criterion_ids": [], "evidence_ids": []}}. Claim only what the evidence shows. A claim without
  evidence is rejected; every required criterion needs a claim; a note alone proves nothing. Every claim is checked by running its evidence again.
- changed_files.json: a list of {{"path", "change": "ADDED"|"MODIFIED"|"DELETED"|"RENAMED"}} of every file you changed, and of no other.
"""
STAGE_REVIEW = """\
Judge the work in the current folder. Do not change it. What its author claims is in {handoff}/coder_result. Leave {handoff}/decision.json:
{{"decision": "pass"|"retry"|"replan", "feedback": [{{"key", "statement"}}]}}.
"""
REVIEW = """\
Judge whether the work in the current folder is to be accepted. Do not change it. What its author claims, and the evidence, are in {handoff}/coder_result.
Leave {handoff}/decision.json: {{"decision": "pass"|"retry"|"replan", "rejected_claims": [claim ids], "residual_risks": [{{"key", "statement", "severity"}}],
"feedback": [{{"key", "statement"}}]}}. Reject every claim that its evidence does not support.
"""
RESEARCH = """\
Find out: {question}

Leave in {handoff}: summary.md (what you found), memory.jsonl (what to remember, one JSON object per line), and if you can analysis_meta.json
(an object with "confidence" between 0 and 1) and operations.jsonl (what you did, one object per line).
"""
PLAN = """\
Make a plan; request.json in {handoff} has everything, with the plan so far and the reasons when it is to be patched. Leave {handoff}/plan.json:
{{"tasks": [{{"id", "name", "actions": [], "files": [], "depends": [task ids], "acceptance_criteria": [{{"id", "statement", "verify_command": ["argument", "list"],
"required": true}}]}}], "confidence": 0 to 1, "research_slots": [{{"id", "question"}}]}}. Put each criterion of request.json's acceptance_criteria,
as it is, into the task that meets it; one that you leave out is added to the last task.
"""
DEBATE = """\
Judge the plan in {handoff}/request.json. Leave {handoff}/decision.json: {{"decision": "pass"|"retry"|"replan", "feedback": [{{"key", "statement", "counter",
"severity": "LOW"|"MEDIUM"|"HIGH"|"CRITICAL", "blocking": false}}]}}. The same remark keeps the same key in every round.
"""
ANSWER = """\
Answer the open remarks on the plan in {handoff}/request.json. Leave {handoff}/answers.json: {{"answers": [{{"key", "statement", "accepted": true|false}}], "confidence": 0 to 1}}.
"""
DESIGN = """\
Make the design for the plan in {handoff}/request.json. Leave it as {handoff}/detail_design.md.
"""


def prompt_for(lease: Lease, handoff: Path) -> str:
    """The prompt of an assignment."""
    kind = str(lease.WhichOneof("work"))
    work = getattr(lease, kind)
    intro = _task(work.handoff) if kind in ("stage", "review") else f"# What is wanted\n\n{_intent(lease)}\n"
    if kind == "stage":
        intro += f"\n# This stage: {work.stage}\n\n{work.directive}\n"
    if lease.assignment.earlier_failures:
        intro += "\n# Why earlier attempts at this were not taken\n\n"
        intro += "".join(f"- {reason}\n" for reason in lease.assignment.earlier_failures)
    question = work.slot.question if kind == "research" else ""
    return f"{intro}\n# What to leave\n\n{_outcome(lease).format(handoff=handoff, question=question)}"


def _intent(lease: Lease) -> str:
    return str(getattr(getattr(lease, str(lease.WhichOneof("work"))), "intent", ""))


def _outcome(lease: Lease) -> str:
    purpose, capability = lease.assignment.purpose, lease.assignment.capability
    if purpose == assignments.PURPOSE_STAGE:
        return {assignments.CAPABILITY_CODE: CODER, assignments.CAPABILITY_REVIEW: STAGE_REVIEW}.get(capability, DESIGN)
    return {
        assignments.PURPOSE_REVIEW: REVIEW,
        assignments.PURPOSE_RESEARCH: RESEARCH,
        assignments.PURPOSE_DEBATE: DEBATE,
        assignments.PURPOSE_PLAN_ANSWER: ANSWER,
        assignments.PURPOSE_DESIGN: DESIGN,
    }.get(purpose, PLAN)


def _task(bundle: CoderHandoff) -> str:
    task = bundle.master_task
    lines = [f"# Task {task.task_id}: {task.name}", "", task.intent, ""]
    lines += [f"- {action}" for action in task.actions]
    if bundle.acceptance_criteria:
        lines += ["", "# It is accepted when", ""]
    for item in bundle.acceptance_criteria:
        proof = f" (proven by `{' '.join(item.verify_command)}`)" if item.verify_command else ""
        lines.append(f"- {item.id}{' [required]' if item.required else ''}: {item.statement}{proof}")
    if task.rejections or task.reflections:
        lines += ["", "# Why earlier attempts were rejected", ""]
        lines += [f"- {reason}" for reason in (*task.rejections, *task.reflections)]
    return "\n".join(lines) + "\n"
