"""What the orchestrator does itself when no agent is there for it: a plan of one task, a design, an empty survey."""

import json

from pointsman.services.orchestrator.domain import criteria
from pointsman.services.orchestrator.domain.model import GivenCriterion, Plan, SlotOutline, TaskOutline
from pointsman.services.orchestrator.domain.run import Run

NAME_LENGTH = 120
SURVEY = "survey"


def plan(run: Run) -> Plan:
    """One task; its criteria are the given ones, else that it does what was asked for."""
    task_id = f"T{run.plan_count + 1}"
    name = " ".join(run.intent.split())[:NAME_LENGTH]
    given = run.given_criteria or (GivenCriterion(f"{task_id}-C1", "the work does what was asked for"),)
    task = {"id": task_id, "name": name, "actions": [name], "requirement": run.intent[:4000]}
    slots = survey_slots(run)
    document = {
        "tasks": [{**task, "acceptanceCriteria": [criteria.written(item) for item in given]}],
        "confidence": run.effective_confidence,
        "researchSlots": [{"id": slot.slot_id, "question": slot.question} for slot in slots],
    }
    outline = TaskOutline(task_id, name, tuple(criteria.outlined(item) for item in given))
    text = json.dumps(document, ensure_ascii=False)
    return Plan((outline,), slots, run.effective_confidence, text, built_in=True)


def survey_slots(run: Run) -> tuple[SlotOutline, ...]:
    """As many general questions as reports are expected."""
    count = max(1, run.order.research_expected)
    question = "What of the repository matters for this task?"
    return tuple(SlotOutline(SURVEY if n == 0 else f"{SURVEY}-{n + 1}", question) for n in range(count))


def is_survey_slot(slot: str) -> bool:
    """Whether a slot is one of the general questions."""
    number = slot.removeprefix(f"{SURVEY}-")
    return slot == SURVEY or (number != slot and number.isdecimal())


def design(run: Run) -> str:
    """The plan's own words as the design."""
    lines = ["# Design from the plan", "", run.intent, ""]
    lines += [f"- {task.outline.task_id}: {task.outline.name}" for task in run.tasks.values()]
    return json.dumps({"designMd": {"text": "\n".join(lines)[:60000]}}, ensure_ascii=False)


def empty_survey(run: Run, slot: str) -> str:
    """The report on a run without a repository: there is nothing to survey, and it says so."""
    memory = json.dumps({"agentId": "built-in", "note": "no repository was given"})
    report = {
        "agentId": "built-in",
        "slot": slot,
        "summaryMd": {"text": "No repository was given: there is nothing to survey.\n"},
        "memoryJsonl": {"text": memory + "\n"},
        "confidence": max(run.effective_confidence, 0.6),
    }
    return json.dumps(report, ensure_ascii=False)
