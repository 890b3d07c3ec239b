"""The documents of a run, as the messages that they were."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from google.protobuf.json_format import Parse

from pointsman._shared.excerpt import excerpt
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.orchestrator.domain.model import Assignment
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.spending import held_by

REMEMBERED_LENGTH = 64 * 1024


def revive(text: str, message: Any) -> Any:
    """A stored document as the message it was; an absent one is empty."""
    return Parse(text, message, ignore_unknown_fields=True) if text else message


def seen(text: str, kind: Any) -> Any:
    """The same for documents that are read again and again; callers must not change it."""
    return _remembered(text, kind) if len(text) <= REMEMBERED_LENGTH else revive(text, kind())


@lru_cache(maxsize=256)
def _remembered(text: str, kind: Any) -> Any:
    return revive(text, kind())


@dataclass(frozen=True)
class RunDocuments:
    """A run with what was handed in for it; each document is read once."""

    run: Run
    documents: Mapping[str, str]

    @cached_property
    def plan(self) -> work.Plan:
        """The plan."""
        plan: work.Plan = seen(self.documents.get("plan", ""), work.Plan)
        return plan

    def budget_left(self, item: Assignment) -> runs.Budget:
        """What may still be spent, beside what other work holds."""
        budget, spent, held = self.run.budget, self.run.spent, held_by(self.run)
        mine = item.holds
        return runs.Budget(
            assignments=max(0, budget.assignments - spent.assignments),
            tokens=max(0, budget.tokens - spent.tokens - held.tokens + mine.tokens),
            cost_micros=max(0, budget.cost_micros - spent.cost_micros - held.cost_micros + mine.cost_micros),
        )

    @cached_property
    def research(self) -> list[handoff.ResearchReport]:
        """The usable reports, each under the slot that it was asked for, whichever its author names."""
        names = sorted(name for name, body in self.documents.items() if name.startswith("research/") and body)
        return [_in_slot(name, self.documents[name]) for name in names]

    def coder_result(self, task_id: str, contender: int = 0) -> handoff.CoderResult:
        """What the coder of a task handed in, or one of several."""
        name = f"work/{task_id}/{contender}" if contender else f"work/{task_id}"
        made: handoff.CoderResult = seen(self.documents.get(name, ""), handoff.CoderResult)
        return made

    def work_of(self, task_id: str, stage: str) -> handoff.CoderResult:
        """What a writing stage of a task handed in."""
        made: handoff.CoderResult = seen(self.documents.get(f"work/{task_id}/{stage}", ""), handoff.CoderResult)
        return made

    def finding(self, task_id: str) -> work.TaskFinding | None:
        """What the verifier found about the work that a task has now, in its TEST stage or among others; None for nothing."""
        task = self.run.tasks[task_id]
        if task.work is None:
            return None
        if task.proof is None or task.proof.patch != task.work.result_commit:
            commit = task.work.result_commit
            proven = next((one for one in task.contenders if one.passed and one.work.result_commit == commit), None)
            name = f"proof/{task_id}/{proven.number}" if proven and commit else ""
            return seen(self.documents[name], work.TaskFinding) if name in self.documents else None
        found: work.TaskFinding = seen(self.documents.get(f"proof/{task_id}", ""), work.TaskFinding)
        return found

    def criteria(self, task_id: str) -> list[handoff.AcceptanceCriterion]:
        """A task's criteria."""
        return [c for task in self.plan.tasks if task.id == task_id for c in task.acceptance_criteria]

    def handoff(self, task_id: str) -> handoff.CoderHandoff:
        """The typed bundle of a task."""
        planned = next((task for task in self.plan.tasks if task.id == task_id), work.PlanTask(id=task_id))
        task = self.run.tasks[task_id]
        return handoff.CoderHandoff(
            master_task=handoff.MasterTask(
                run_id=self.run.run_id,
                task_id=task_id,
                attempt=task.attempt,
                name=planned.name,
                intent=self.run.intent[:60000],
                actions=planned.actions,
                files=planned.files,
                requirement=planned.requirement,
                untrusted=planned.untrusted,
                rejections=[excerpt(reason, 4000) for reason in task.rejections],
                reflections=[excerpt(said, 4000) for said in (*task.reflections, *task.setbacks)][-16:],
            ),
            detail_design=seen(self.documents.get("design", ""), handoff.DetailDesign),
            acceptance_criteria=planned.acceptance_criteria,
            research_bundle=self.research,
        )


def _in_slot(name: str, body: str) -> handoff.ResearchReport:
    report = handoff.ResearchReport()
    report.CopyFrom(seen(body, handoff.ResearchReport))
    report.slot = name.removeprefix("research/")
    return report
