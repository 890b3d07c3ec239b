"""The rules of workflows in plain dicts and sets, slow and literal: what the service is compared with, sharing no code with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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
    "constrain": NOT_OVER,
    "meet": NOT_OVER,
    "use": EVERYWHERE,
}
WINDOW_TOKENS = 200_000
DANGER_PERCENT = 80


class Refused(Exception):
    """The rules do not allow the command; the text is the reason."""


class Rulings:
    """One workflow. A command is a method; its answer is what the service's answer says beside the progress."""

    def __init__(self, inferred: Callable[[Any], Iterable[str]]) -> None:
        self.inferred = inferred
        self.status = "none"
        self.tasks: dict[str, dict[str, Any]] = {}
        """In the order of the plan."""
        self.settings: dict[str, Any] = {"mode": "phase", "subagent": None, "before_commit": True}
        self.progressive = False
        self.unblocked: set[str] = set()
        self.constraints: dict[str, bool] = {}
        """Hard ones, and whether each is met."""
        self.waived: set[str] = set()
        self.pause_cause = ""
        self.commit_approved = False
        self.consecutive = 0
        self.tokens = 0

    def plan(self, tasks: Sequence[Any], *, append: bool, progressive: bool | None, settings: dict[str, Any]) -> bool:
        """Store a plan, or the settings alone when there are no tasks; whether the workflow is new."""
        created = self.status == "none"
        if not created:
            self._expect_taken("plan")
        self._check_plan(tasks, append)
        self.status = "idle" if created else self.status
        self.settings |= settings
        self.progressive = self.progressive if progressive is None else progressive
        if tasks:
            self._store(tasks, append)
        return created

    def _check_plan(self, tasks: Sequence[Any], append: bool) -> None:
        if tasks and self.in_state("in_progress"):
            raise Refused("STATE_FORBIDS")
        stay = {own_id for own_id, task in self.tasks.items() if append or task["state"] in SETTLED}
        listed = [task["id"] for task in tasks]
        twice = len(set(listed)) < len(listed) or (append and stay & set(listed))
        unknown = any(one not in stay | set(listed) for task in tasks for one in task["depends"])
        bad_path = any(".." in path for task in tasks for path in task["files"])
        if twice or unknown or bad_path or _has_cycle({task["id"]: set(task["depends"]) for task in tasks}):
            raise Refused("INVALID_FIELD")

    def _store(self, tasks: Sequence[Any], append: bool) -> None:
        before, listed = self.tasks, {task["id"] for task in tasks}
        self.tasks = {
            own_id: task
            for own_id, task in before.items()
            if append or (task["state"] in SETTLED and own_id not in listed)
        }
        for task in tasks:
            known = before.get(task["id"])
            settled = known is not None and known["state"] in SETTLED
            self.tasks[task["id"]] = known if known and settled else self._new(task, known)
        goes_on = {"failed": not self.in_state("failed"), "blocked": self.ready() or not self.in_state("blocked")}
        if self.status == "idle":
            self.status = "planned"
        elif goes_on.get(self.status):
            self.status = "running"
        self._end()

    def _new(self, task: Any, known: dict[str, Any] | None) -> dict[str, Any]:
        blockers = set(task["blocked_by"]) or (set(self.inferred(task)) if self.progressive else set())
        state = "blocked" if blockers - self.unblocked else "pending"
        attempt = known["attempt"] if known else 0
        return {**task, "blocked_by": blockers, "state": state, "retries": 0, "attempt": attempt}

    def execute(self, settings: dict[str, Any]) -> None:
        """Start."""
        self._expect_taken("execute")
        self.settings |= settings
        self.consecutive = 0
        self.status = "running"
        self._end()

    def take(self, limit: int) -> list[tuple[str, int]]:
        """Hand tasks out: with the number of their attempt."""
        self._expect_taken("take")
        if self.status == "running" and self._commit_waits():
            self._pause("before_commit")
        if self.status != "running":
            return []
        chosen = self._choice(limit)
        for own_id in chosen:
            task = self.tasks[own_id]
            task["state"] = "in_progress"
            task["attempt"] += 1
            if _commits(task):
                self.commit_approved = False
        return [(own_id, self.tasks[own_id]["attempt"]) for own_id in chosen]

    def _choice(self, limit: int) -> list[str]:
        """In the plan's order, up to the first that may not go with what is in the air or chosen."""
        chosen: list[str] = []
        for own_id in self.ready():
            beside = [*self.in_state("in_progress"), *chosen]
            alone = any(self.tasks[one]["gate"] or _commits(self.tasks[one]) for one in [own_id, *beside])
            full = len(chosen) == limit or (self.settings["mode"] == "step" and beside)
            other = {self.tasks[one]["phase"] for one in beside} - {self.tasks[own_id]["phase"]}
            if full or (alone and beside) or (self.settings["mode"] == "phase" and other):
                break
            chosen.append(own_id)
        return chosen

    def release(self, ids: Sequence[str], *, every: bool, owner: bool) -> int:
        """Give tasks back, or the whole workflow; how many tasks."""
        self._expect_taken("let_go" if owner else "release")
        if (every or owner) == bool(ids):
            raise Refused("INVALID_FIELD")
        given_back = self.in_state("in_progress") if every or owner else self._named(ids, "in_progress")
        for own_id in given_back:
            self.tasks[own_id]["state"] = "pending"
        if owner and self.status == "running":
            self._pause("owner_released")
        return len(given_back)

    def complete(self, own_id: str, *, attempt: int, characters: int) -> None:
        """A task is done."""
        self._expect_taken("complete")
        self._check_attempt(own_id, attempt)
        self.tokens += -(-characters // 4)
        self._land([own_id])

    def fail(self, own_id: str, *, attempt: int) -> None:
        """A task failed, and the workflow with it."""
        self._expect_taken("fail")
        self._check_attempt(own_id, attempt)
        self.tasks[own_id]["state"] = "failed"
        self._move("failed")

    def settle(self, completed: Sequence[str], rejected: Sequence[tuple[str, bool]]) -> None:
        """A wave: all or nothing."""
        self._expect_taken("settle")
        named = [*completed, *(own_id for own_id, _ in rejected)]
        if not named:
            raise Refused("INVALID_FIELD")
        self._named(named, "in_progress")
        for own_id, again in rejected:
            self._check_retries(own_id, again)
        for own_id, again in rejected:
            self.tasks[own_id]["state"] = "pending" if again else "failed"
            self.tasks[own_id]["retries"] += again
        if not all(again for _, again in rejected):
            self._move("failed")
        self._land(completed)

    def retry(self, own_id: str) -> int:
        """A failed task waits for its turn again; how often it did."""
        self._expect_taken("retry")
        task = self._one(own_id, {"failed"})
        self._check_retries(own_id, True)
        task["state"] = "pending"
        task["retries"] += 1
        if self.status == "failed":
            self._move("running")
        return int(task["retries"])

    def skip(self, own_id: str) -> None:
        """A task is left out."""
        self._expect_taken("skip")
        was = self._one(own_id, {"pending", "blocked", "failed"})["state"]
        self.tasks[own_id]["state"] = "skipped"
        goes_on = was == "failed" if self.status == "failed" else self.ready() or not self.in_state("blocked")
        if self.status in ("failed", "blocked") and goes_on:
            self._move("running")
        self._end()

    def pause(self) -> None:
        """Somebody asked."""
        self._expect_taken("pause")
        self._pause("requested")

    def resume(self, settings: dict[str, Any]) -> None:
        """Run on; who resumes before a commit approves it."""
        self._expect_taken("resume")
        self.commit_approved = self.pause_cause == "before_commit"
        self.settings |= settings
        self.consecutive = 0
        self._move("running")
        self._end()

    def unblock(self, dependency: str) -> int:
        """A dependency is there; how many tasks that frees."""
        self._expect_taken("unblock")
        blocked = self.in_state("blocked")
        if dependency == "all":
            self.unblocked |= {"api_spec", "design_spec"}.union(*(self.tasks[one]["blocked_by"] for one in blocked))
        else:
            self.unblocked.add(dependency)
        freed = [one for one in blocked if self.tasks[one]["blocked_by"] <= self.unblocked]
        for own_id in freed:
            self.tasks[own_id]["state"] = "pending"
        if freed and self.status == "blocked":
            self._move("running")
        self._end()
        return len(freed)

    def cancel(self) -> None:
        """End the plan; its tasks stay as they are."""
        self._expect_taken("cancel")
        self._move({"planned": "idle", "idle": "idle"}.get(self.status, "failed"))

    def constrain(self, constraint_id: str) -> None:
        """One hard constraint more; known ones stay as they are."""
        self._expect_taken("constrain")
        self.constraints.setdefault(constraint_id, False)

    def verify(self, constraint_id: str, *, passed: bool) -> None:
        """A check was made; what a person waived stays waived."""
        self._meet(constraint_id, passed or constraint_id in self.waived)

    def waive(self, constraint_id: str) -> None:
        """A person takes a constraint out of the way."""
        self._meet(constraint_id, True)
        self.waived.add(constraint_id)

    def _meet(self, constraint_id: str, met: bool) -> None:
        self._expect_taken("meet")
        if constraint_id not in self.constraints:
            raise Refused("NOT_FOUND")
        self.constraints[constraint_id] = met
        if self.pause_cause == "constraints" and all(self.constraints.values()):
            self._move("running")
            self._end()

    def use(self, *, characters: int | None, tokens: int) -> None:
        """Context was used: characters more, or as many tokens in all."""
        self._expect_taken("use")
        self.tokens = tokens if characters is None else self.tokens + -(-characters // 4)
        if self.status == "running" and not self.subagents() and self.usage() > DANGER_PERCENT:
            self._pause("context_usage")

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

    def usage(self) -> float:
        """The context's usage in percent."""
        return 100 * self.tokens / WINDOW_TOKENS

    def limit(self) -> int:
        """How many tasks may be done in a row, by the next task and the context's usage."""
        coming = self.tasks[self.ready()[0]] if self.ready() else None
        base = 8
        if coming and (coming["gate"] or coming["design_ref"] or len(coming["files"]) > 1):
            base = 3
        elif coming and len(coming["actions"]) > 2:
            base = 5
        if self.usage() > 70:
            return max(2, base - 3)
        return max(3, base - 1) if self.usage() > 50 else base

    def _land(self, completed: Sequence[str]) -> None:
        """Tasks are done: end if there is nothing to run, else stop where a rule says so."""
        for own_id in completed:
            self.tasks[own_id]["state"] = "completed"
        self.consecutive += len(completed)
        self._end()
        if self.status == "running" and completed:
            cause = self._stop_of_mode(completed) or self._stop_of_limits()
            if cause:
                self._pause(cause)

    def _stop_of_mode(self, completed: Sequence[str]) -> str:
        mode, ready = self.settings["mode"], self.ready()
        if mode == "step":
            return "step"
        if any(self.tasks[own_id]["gate"] for own_id in completed):
            return "quality_gate"
        phase_is_over = bool(ready) and not self.in_state("in_progress")
        if mode == "phase" and phase_is_over and self.tasks[ready[0]]["phase"] != self.tasks[completed[-1]]["phase"]:
            return "phase_changed"
        return "before_commit" if self._commit_waits() else ""

    def _stop_of_limits(self) -> str:
        if self.subagents():
            return ""
        if self.consecutive >= self.limit():
            return "consecutive_limit"
        return "context_usage" if self.usage() > DANGER_PERCENT else ""

    def _commit_waits(self) -> bool:
        """Whether a commit that nobody approved is next, with nothing in the air."""
        if self.settings["mode"] != "quality_gate" or not self.settings["before_commit"] or self.commit_approved:
            return False
        ready = self.ready()
        return bool(ready) and _commits(self.tasks[ready[0]]) and not self.in_state("in_progress")

    def _end(self) -> None:
        """Nothing to run: failed, blocked, paused for what must hold, or completed."""
        if self.status != "running" or self.in_state("in_progress") or self.ready():
            return
        if self.in_state("failed"):
            self._move("failed")
        elif self.in_state("blocked"):
            self._move("blocked")
        elif not all(self.constraints.values()):
            self._pause("constraints")
        else:
            self._move("completed")

    def _pause(self, cause: str) -> None:
        self.status, self.pause_cause = "paused", cause

    def _move(self, status: str) -> None:
        self.status, self.pause_cause = status, ""

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


def _commits(task: Mapping[str, Any]) -> bool:
    return "git_commit" in task["actions"]


def _has_cycle(depends: dict[str, set[str]]) -> bool:
    """Whether some tasks wait for each other for ever."""
    done: set[str] = set()
    while True:
        free = {own_id for own_id, needed in depends.items() if not (needed & depends.keys()) - done}
        if free <= done:
            return done != set(depends)
        done |= free
