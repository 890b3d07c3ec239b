"""The rules of workflows in plain dicts and sets, slow and literal: what the service is compared with, sharing no code with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.contract.workflow.stage_rulings import SETTLED, Refused, Stage
from tests.contract.workflow.words import collaboration, findings, inferred


class Rulings(Stage):
    """One workflow. A command is a method; its answer is what the service's answer says beside the progress."""

    def plan(self, tasks: Sequence[Any], *, append: bool, fields: dict[str, Any], settings: dict[str, Any]) -> Any:
        """Store a plan, or what is said beside it when there are no tasks; whether the workflow is new, and who works on it."""
        created = self.status == "none"
        if not created:
            self._expect_taken("plan")
        self._check_plan(tasks, append, fields)
        self.status = "idle" if created else self.status
        self.settings |= settings
        self.progressive = fields.get("progressive", self.progressive)
        self.context.change(fields)
        self.standing.change(fields)
        if fields.get("intake_text"):
            self.together = collaboration(fields["intake_text"], len(tasks))
        if tasks:
            self.standing.cancelled = False
            self._store(tasks, append)
        return created, self.together

    def _check_plan(self, tasks: Sequence[Any], append: bool, fields: dict[str, Any]) -> None:
        if self.standing.owned_by_another(fields):
            raise Refused("WORKFLOW_OWNED")
        if self.standing.comes_late(fields) or (tasks and self.in_state("in_progress")):
            raise Refused("STATE_FORBIDS")
        stay = {own_id for own_id, task in self.tasks.items() if append or task["state"] in SETTLED}
        listed = [task["id"] for task in tasks]
        twice = len(set(listed)) < len(listed) or (append and stay & set(listed))
        unknown = any(one not in stay | set(listed) for task in tasks for one in task["depends"])
        bad_path = any(".." in path for task in tasks for path in task["files"])
        circular = _has_cycle({task["id"]: set(task["depends"]) for task in tasks})
        if twice or unknown or bad_path or circular or not self.context.takes(fields):
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
        blockers = set(task["blocked_by"]) or (inferred(task) if self.progressive else set())
        state = "blocked" if blockers - self.unblocked else "pending"
        attempt = known["attempt"] if known else 0
        return {**task, "blocked_by": blockers, "state": state, "retries": 0, "attempt": attempt}

    def execute(self, settings: dict[str, Any], accepted: Sequence[str]) -> None:
        """Start; where an audit is asked for, only with each of its errors accepted by name."""
        self._expect_taken("execute")
        if settings.get("audit", self.settings["audit"]):
            errors = {finding_id for finding_id, error in self.findings() if error}
            if errors - set(accepted):
                raise Refused("AUDIT_NOT_PASSED")
            self.audited = not errors
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
        """In the plan's order, up to the first that may not go with what is in the air or chosen; no two on one file."""
        chosen: list[str] = []
        for own_id in self.ready()[: 4 * limit]:
            beside = [*self.in_state("in_progress"), *chosen]
            alone = any(self.tasks[one]["gate"] or _commits(self.tasks[one]) for one in [own_id, *beside])
            full = len(chosen) == limit or (self.settings["mode"] == "step" and beside)
            other = {self.tasks[one]["phase"] for one in beside} - {self.tasks[own_id]["phase"]}
            if full or (alone and beside) or (self.settings["mode"] == "phase" and other):
                break
            taken = {path for one in beside for path in self.tasks[one]["files"]}
            if taken.isdisjoint(self.tasks[own_id]["files"]):
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
        self.standing.owner = "" if owner else self.standing.owner
        if owner and self.status == "running":
            self._pause("owner_released")
        return len(given_back)

    def complete(self, own_id: str, *, attempt: int, characters: int) -> None:
        """A task is done."""
        self._expect_taken("complete")
        self._check_attempt(own_id, attempt)
        if characters:
            self.context.add(own_id, characters)
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
        self.risks += [own_id] if self.tasks[own_id]["gate"] else []
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
        self.standing.cancel()

    def merge(self, sets: Sequence[Any]) -> dict[str, Any]:
        """Constraints more; what is left out."""
        self._expect_taken("merge")
        return self.held.merge(sets)

    def verify(self, results: Sequence[tuple[str, bool]]) -> list[str]:
        """Checks were made; what is not met yet."""
        self._expect_taken("meet")
        if {constraint_id for constraint_id, _ in results} - set(self.held.ids()):
            raise Refused("NOT_FOUND")
        for constraint_id, passed in results:
            self.held.check(constraint_id, passed=passed)
        return self._meet()

    def waive(self, constraint_id: str) -> list[str]:
        """A person takes a constraint out of the way; what is not met yet."""
        self._expect_taken("meet")
        if not self.held.waive(constraint_id):
            raise Refused("NOT_FOUND")
        self.risks.append(constraint_id)
        return self._meet()

    def _meet(self) -> list[str]:
        if self.pause_cause == "constraints" and not self.held.unmet():
            self._move("running")
            self._end()
        return self.held.unmet()

    def use(self, *, characters: int | None, tokens: int) -> float:
        """Context was used: characters more, or as many tokens in all; how full it is."""
        self._expect_taken("use")
        if characters is None:
            self.context.reach("", tokens)
        else:
            self.context.add("", characters)
        if self.status == "running" and not self.subagents() and self.context.over("danger"):
            self._pause("context_usage")
        return self.context.percent()

    def audit(self) -> list[tuple[str, bool]]:
        """What nobody decided, and whether that is an error."""
        self._expect_taken("audit")
        found = self.findings()
        self.audited = not any(error for _, error in found)
        return found

    def findings(self) -> list[tuple[str, bool]]:
        """What an audit would find now."""
        return findings(self.tasks.values(), [*self.held.hard, *self.held.soft])

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
        return "context_usage" if self.context.over("danger") else ""

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
        elif self.held.unmet():
            self._pause("constraints", *self.held.unmet())
        else:
            self._move("completed")

    def _pause(self, cause: str, *names: str) -> None:
        self.status, self.pause_cause, self.pause_names = "paused", cause, names

    def _move(self, status: str) -> None:
        if self.status == "failed" != status:
            self.standing.cancelled = False
        self.status, self.pause_cause, self.pause_names = status, "", ()


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
