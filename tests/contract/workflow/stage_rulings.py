"""A workflow as the rules see it: its tasks in a plain dict, and what can be read off them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.contract.workflow.constraint_rulings import Held
from tests.contract.workflow.standing_rulings import Context, Standing

SETTLED = {"completed", "skipped"}
EVERYWHERE = {"idle", "planned", "running", "paused", "blocked", "failed", "completed"}
NOT_OVER = EVERYWHERE - {"completed"}
AT_WORK = {"running", "paused", "failed"}
TAKEN: Mapping[str, set[str]] = {
    "plan": NOT_OVER,
    "execute": {"planned"},
    "take": EVERYWHERE - {"idle", "planned"},
    "release": AT_WORK,
    "let_go": NOT_OVER,
    "complete": AT_WORK,
    "fail": AT_WORK,
    "settle": AT_WORK,
    "retry": AT_WORK,
    "skip": EVERYWHERE - {"idle", "completed"},
    "pause": {"running"},
    "resume": {"paused"},
    "unblock": EVERYWHERE,
    "cancel": NOT_OVER,
    "merge": NOT_OVER,
    "meet": NOT_OVER,
    "use": EVERYWHERE,
    "audit": EVERYWHERE,
}


class Refused(Exception):
    """The rules do not allow the command; the text is the reason."""


class Stage:
    """Where one workflow stands."""

    def __init__(self) -> None:
        self.status = "none"
        self.tasks: dict[str, dict[str, Any]] = {}
        """In the order of the plan."""
        self.settings: dict[str, Any] = {"mode": "phase", "subagent": None, "before_commit": True, "audit": False}
        self.progressive = False
        self.unblocked: set[str] = set()
        self.held, self.context, self.standing = Held(), Context(), Standing()
        self.risks: list[str] = []
        self.audited: bool | None = None
        """Whether the last audit passed."""
        self.together: tuple[str, str, int] | None = None
        """Which models work together."""
        self.pause_cause, self.pause_names = "", tuple[str, ...]()
        self.commit_approved = False
        self.consecutive = 0

    def in_state(self, state: str) -> list[str]:
        """The tasks in a state."""
        return [own_id for own_id, task in self.tasks.items() if task["state"] == state]

    def open_dependencies(self, own_id: str) -> int:
        """How many of its dependencies a task still waits for."""
        settled = {one for one, task in self.tasks.items() if task["state"] in SETTLED}
        return len(set(self.tasks[own_id]["depends"]) - settled)

    def ready(self) -> list[str]:
        """The tasks that could be handed out, in the plan's order."""
        return [own_id for own_id in self.in_state("pending") if not self.open_dependencies(own_id)]

    def subagents(self) -> bool:
        """As said, else with more than five tasks."""
        said = self.settings["subagent"]
        return len(self.tasks) > 5 if said is None else bool(said)

    def warnings(self) -> list[str]:
        """What is told and stops nothing."""
        over = [name for name in ("danger", "warning") if self.context.over(name)][:1]
        return over + ["consecutive"] * (self.subagents() and self.consecutive >= self.limit())

    def blocking(self) -> set[str]:
        """What blocked tasks wait for."""
        waited = (self.tasks[own_id]["blocked_by"] for own_id in self.in_state("blocked"))
        return set[str]().union(*waited) - self.unblocked

    def executable(self) -> bool:
        """Whether it could go on with nothing in the way."""
        at_hand = bool(self.ready() or self.in_state("in_progress"))
        return self.status == "idle" or (self.status in ("planned", "paused") and at_hand)

    def waits_for(self) -> set[str]:
        """What it is told to wait for: of several failed tasks, any one."""
        nothing_to_do = not self.ready() and not self.in_state("in_progress")
        blockers = ", ".join(sorted(self.blocking()))
        if self.status == "idle":
            return {"a plan"}
        if self.status == "failed":
            failed = self.in_state("failed")
            return {"retry or skip", *(f"retry or skip {own_id}" for own_id in failed)} if failed else {"a new plan"}
        if self.status == "blocked":
            return {f"unblock {blockers}"}
        step = "execute" if self.status == "planned" else f"resume ({self.pause_cause})"
        if nothing_to_do and blockers:
            return {f"unblock {blockers}, then {step}"}
        if nothing_to_do and self.pause_cause == "constraints" and self.held.unmet():
            return {f"verify or waive {', '.join(self.held.unmet())}"}
        return {step}

    def limit(self) -> int:
        """How many tasks may be done in a row, by the next task and the context's usage."""
        coming = self.tasks[self.ready()[0]] if self.ready() else None
        base = 8
        if coming and (coming["gate"] or coming["design_ref"] or len(coming["files"]) > 1):
            base = 3
        elif coming and len(coming["actions"]) > 2:
            base = 5
        if self.context.percent() > 70:
            return max(2, base - 3)
        return max(3, base - 1) if self.context.percent() > 50 else base

    def _expect_taken(self, command: str) -> None:
        if self.status == "none":
            raise Refused("NOT_FOUND")
        if self.status not in TAKEN[command]:
            raise Refused("STATE_FORBIDS")

    def _one(self, own_id: str, states: set[str]) -> dict[str, Any]:
        if own_id not in self.tasks:
            raise Refused("NOT_FOUND")
        if self.tasks[own_id]["state"] not in states:
            raise Refused("STATE_FORBIDS")
        return self.tasks[own_id]

    def _named(self, ids: Sequence[str], state: str) -> Sequence[str]:
        if len(set(ids)) < len(ids):
            raise Refused("INVALID_FIELD")
        if set(ids) - set(self.tasks):
            raise Refused("NOT_FOUND")
        for own_id in ids:
            self._one(own_id, {state})
        return ids

    def _check_attempt(self, own_id: str, attempt: int) -> None:
        if attempt not in (0, self._one(own_id, {"in_progress"})["attempt"]):
            raise Refused("LOST_RACE")

    def _check_retries(self, own_id: str, again: bool) -> None:
        if again and self.tasks[own_id]["retries"] == 3:
            raise Refused("RETRIES_EXHAUSTED")
