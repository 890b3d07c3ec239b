"""Random walks through a workflow: commands as plain tuples, mostly such as make sense where the workflow stands."""

from dataclasses import dataclass
from random import Random  # noqa: TID251 - a walk is repeated from its seed
from typing import Any

from tests.contract.workflow.rulings import Rulings
from tests.contract.workflow.words import FINDINGS, INTAKES, NAMES

Command = tuple[str, dict[str, Any]]

BLOCKERS = ("api_spec", "design_spec", "legal")
HARD_IDS = ("C1", "C2", "C3", "C4")
TEXTS = ("it holds", "it is quick", "colour TBD", "maybe later")
SOURCES = ("codex", "gemini", "claude", "user")
WISHES = [{"id": f"S{number}", "text": text} for number, text in enumerate([*FINDINGS, *list(FINDINGS)[:3]])]
"""Soft constraints, each of which the audit finds; three descriptions have two ids each."""
CRITERIA = [f"criterion {number}" for number in range(9)]


@dataclass(frozen=True, slots=True)
class Temper:
    """What a walk's plans and commands are like; each walk has its own, so that each rule is met often in some."""

    size: int
    gates: float
    commits: float
    blockers: float
    weights: float
    phases: int
    failures: int
    odd: float
    demands: int
    """How many sets of constraints come at once."""
    beside: int
    """How often something is asked beside the tasks: about the context, constraints, the audit."""
    vague: float
    owned: float
    steady: bool


def temper(random: Random) -> Temper:
    """A temper."""
    return Temper(
        size=random.choice((2, 5, 6, 12)),
        gates=random.choice((0.0, 0.0, 0.3)),
        commits=random.choice((0.0, 0.0, 0.3)),
        blockers=random.choice((0.0, 0.1, 0.6)),
        weights=random.choice((0.0, 0.3, 0.9)),
        phases=random.choice((1, 2, 2)),
        failures=random.choice((0, 1, 60)),
        odd=random.choice((0.02, 0.1, 0.3)),
        demands=random.choice((1, 2, 4)),
        beside=random.choice((0, 1, 8)),
        vague=random.choice((0.0, 0.1, 0.3)),
        owned=random.choice((0.0, 0.3, 0.7)),
        steady=random.random() < 0.4,
    )


class Walker:
    """Says what to try next."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.temper = temper(self.random)

    def next(self, rulings: Rulings) -> Command:
        """A command: now and then any, mostly one that this state is likely to take."""
        if self.random.random() < self.temper.odd:
            kind = self.random.choice(KINDS)
        else:
            weights = LIKELY[rulings.status] | self._at_work(rulings) | self._beside(rulings)
            kind = self.random.choices([*weights], [*weights.values()])[0]
        return kind, getattr(self, f"_{kind}")(rulings)

    def _at_work(self, rulings: Rulings) -> dict[str, int]:
        if not rulings.in_state("in_progress") or rulings.status not in ("running", "paused", "failed"):
            return {}
        return {"complete": 20, "settle": 6, "fail": self.temper.failures, "release": 1}

    def _beside(self, rulings: Rulings) -> dict[str, int]:
        if rulings.status == "none":
            return {}
        often = self.temper.beside
        held = {"verify": often + 2, "waive": often // 4 + 1} if rulings.held.ids() else {}
        return {"use": often, "merge": often // 2, "audit": often // 4, **held}

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _some(self, rulings: Rulings, *states: str) -> str:
        """A task in one of the states, if there is one; now and then any, or none that exists."""
        fitting = [own_id for state in states for own_id in rulings.in_state(state)]
        if fitting and not self._chance(self.temper.odd / 2):
            return fitting[0] if self._chance(0.6) else self.random.choice(fitting)
        return self.random.choice([*rulings.tasks, "t99"])

    def _plan(self, rulings: Rulings) -> dict[str, Any]:
        tasks = [] if self._chance(0.1) else self._tasks(rulings)
        return {
            "tasks": tasks,
            "append": self._chance(0.3),
            "fields": self._fields(),
            "settings": self._settings(),
        }

    def _fields(self) -> dict[str, Any]:
        """What is said beside the tasks: little at a time."""
        random = self.random
        owner = random.choice(("r1", "r2", ""))
        offered = {
            "progressive": (0.5, random.random() < 0.5),
            "intake_text": (0.3, random.choice([*INTAKES])),
            "priority": (0.3, random.randint(0, 2)),
            "owner_run_id": (self.temper.owned, owner),
            "window_tokens": (0.1, random.choice((100_000, 250_000))),
            "warning_threshold": (0.1, random.choice((50, 70, 85))),
            "danger_threshold": (0.1, random.choice((70, 90))),
        }
        return {name: value for name, (share, value) in offered.items() if self._chance(share)}

    def _tasks(self, rulings: Rulings) -> list[dict[str, Any]]:
        known = [*rulings.tasks]
        fresh = [f"t{number}" for number in range(len(known), len(known) + self.temper.size)]
        again = [own_id for own_id in known if self._chance(0.3)]
        few = self._chance(0.5)
        ids = [*again, *(fresh[: self.random.randint(0 if again else 1, self.temper.size)] if few else fresh)]
        if self._chance(0.3):
            self.random.shuffle(ids)
        return [self._task(own_id, ids[:index]) for index, own_id in enumerate(ids)]

    def _task(self, own_id: str, earlier: list[str]) -> dict[str, Any]:
        random = self.random
        depends = random.sample(earlier, min(len(earlier), random.choice((0, 0, 1, 2))))
        if self._chance(self.temper.odd / 10):
            depends = [random.choice((own_id, "t98", *earlier))]
        heavy = self._chance(self.temper.weights)
        paths = (("src/a.py", "src/b.py"), ("",), ("src/components/card.py",), ("src/api/client.py",))
        files = random.choice(paths) if heavy else ("",)
        actions = ["git_commit"] if self._chance(self.temper.commits) else random.choice((["edit"], list("abc")))
        name = random.choice([*NAMES]) if self._chance(self.temper.blockers) else "do it"
        return {
            "id": own_id if not self._chance(self.temper.odd / 20) else "t0",
            "name": random.choice([*FINDINGS]) if self._chance(self.temper.vague) else name,
            "requirement": random.choice(["", *FINDINGS]) if self._chance(self.temper.vague) else "it works",
            "phase": f"phase {random.randint(1, self.temper.phases)}",
            "files": ["../x"] if self._chance(self.temper.odd / 20) else [path for path in files if path],
            "actions": [] if self._chance(self.temper.vague / 2) else actions,
            "depends": depends,
            "blocked_by": random.sample(BLOCKERS, random.choice((1, 2)))
            if self._chance(self.temper.blockers / 2)
            else [],
            "gate": self._chance(self.temper.gates),
            "design_ref": "figma" if heavy and self._chance(0.3) else "",
        }

    def _settings(self) -> dict[str, Any]:
        """Steady walks run without pauses of the mode, so that limits are reached."""
        if self.temper.steady:
            subagent = {} if self.temper.size == 5 else {"subagent": False}
            return {"mode": "quality_gate", "audit": self.temper.vague > 0, **subagent}
        offered = {
            "mode": self.random.choice(("step", "phase", "quality_gate")),
            "subagent": self._chance(0.5),
            "before_commit": self._chance(0.7),
            "audit": self._chance(0.7),
        }
        return {name: value for name, value in offered.items() if self._chance(0.4)}

    def _execute(self, rulings: Rulings) -> dict[str, Any]:
        """What the audit finds is mostly accepted, all of it or but one."""
        accepted = [finding_id for finding_id, error in rulings.findings() if error]
        return {"settings": self._settings(), "accepted": accepted[self._chance(0.4) :]}

    def _resume(self, _rulings: Rulings) -> dict[str, Any]:
        return {"settings": self._settings() if self._chance(0.3) else {}}

    def _take(self, _rulings: Rulings) -> dict[str, Any]:
        return {"limit": self.random.choice((1, 2, 5))}

    def _release(self, rulings: Rulings) -> dict[str, Any]:
        way = self.random.choice(("ids", "ids", "every", "owner"))
        named = way == "ids" or self._chance(self.temper.odd / 2)
        ids = [self._some(rulings, "in_progress")] if named else []
        return {"ids": ids, "every": way == "every", "owner": way == "owner"}

    def _complete(self, rulings: Rulings) -> dict[str, Any]:
        characters = self.random.choice((0, 0, 0, 1, 100_001, 400_000)) if self._chance(0.3) else 0
        return {**self._landing(rulings), "characters": characters}

    def _fail(self, rulings: Rulings) -> dict[str, Any]:
        return self._landing(rulings)

    def _landing(self, rulings: Rulings) -> dict[str, Any]:
        own_id = self._some(rulings, "in_progress")
        now = rulings.tasks[own_id]["attempt"] if own_id in rulings.tasks else 1
        return {"own_id": own_id, "attempt": self.random.choice((0, now, now, now + self._chance(self.temper.odd)))}

    def _settle(self, rulings: Rulings) -> dict[str, Any]:
        ids = [own_id for own_id in rulings.in_state("in_progress") if self._chance(0.7)]
        if self._chance(self.temper.odd / 2):
            ids.append(self._some(rulings))
        rejected = [own_id for own_id in ids if self._chance(self.temper.failures / 100)]
        return {
            "completed": [own_id for own_id in ids if own_id not in rejected],
            "rejected": [(own_id, self._chance(0.8)) for own_id in rejected],
        }

    def _retry(self, rulings: Rulings) -> dict[str, Any]:
        return {"own_id": self._some(rulings, "failed")}

    def _skip(self, rulings: Rulings) -> dict[str, Any]:
        return {"own_id": self._some(rulings, "failed", "blocked", "pending")}

    def _pause(self, _rulings: Rulings) -> dict[str, Any]:
        return {}

    def _unblock(self, _rulings: Rulings) -> dict[str, Any]:
        return {"dependency": self.random.choice((*BLOCKERS, "all"))}

    def _cancel(self, _rulings: Rulings) -> dict[str, Any]:
        return {}

    def _merge(self, _rulings: Rulings) -> dict[str, Any]:
        return {"sets": [self._set() for _ in range(self.random.randint(1, self.temper.demands))]}

    def _set(self) -> dict[str, Any]:
        random = self.random
        hard = [
            {"id": random.choice(HARD_IDS), "text": random.choice(TEXTS), "source": random.choice(SOURCES)}
            for _ in range(random.randint(0, self.temper.demands))
        ]
        questions = [(f"question {random.randint(1, 8)}?", random.choice(SOURCES)) for _ in range(random.randint(0, 3))]
        return {
            "hard": hard,
            "soft": random.sample(WISHES, random.randint(0, 4)),
            "questions": questions,
            "criteria": [one for one in random.sample(CRITERIA, len(CRITERIA)) if self._chance(0.9)],
        }

    def _verify(self, rulings: Rulings) -> dict[str, Any]:
        if rulings.held.unmet() and self._chance(0.5):
            return {"results": [(constraint_id, True) for constraint_id in rulings.held.unmet()]}
        return {"results": [(self._constraint(rulings), self._chance(0.6)) for _ in range(self.random.randint(1, 3))]}

    def _waive(self, rulings: Rulings) -> dict[str, Any]:
        return {"constraint_id": self._constraint(rulings)}

    def _constraint(self, rulings: Rulings) -> str:
        ids = rulings.held.ids()
        return self.random.choice(ids) if ids and not self._chance(self.temper.odd / 2) else "C9"

    def _audit(self, _rulings: Rulings) -> dict[str, Any]:
        return {}

    def _use(self, rulings: Rulings) -> dict[str, Any]:
        """Often to a threshold, or one token over it."""
        if self._chance(0.4):
            return {"characters": self.random.choice((0, 3, 100_000)), "tokens": 0}
        limits = rulings.context.limits
        percent = self.random.choice((0, 50, 70, limits["warning_threshold"], limits["danger_threshold"]))
        return {"characters": None, "tokens": limits["window_tokens"] * percent // 100 + self.random.randint(0, 1)}


LIKELY: dict[str, dict[str, int]] = {
    "none": {"plan": 1},
    "idle": {"plan": 8, "cancel": 1, "unblock": 1},
    "planned": {"execute": 16, "plan": 2, "skip": 1, "unblock": 1, "cancel": 3},
    "running": {"take": 20, "skip": 1, "retry": 1, "pause": 1, "plan": 1, "unblock": 1},
    "paused": {"resume": 20, "take": 1, "skip": 1, "retry": 1, "plan": 1, "cancel": 1},
    "blocked": {"unblock": 8, "skip": 3, "plan": 3, "take": 1, "cancel": 1},
    "failed": {"retry": 12, "skip": 3, "plan": 1, "take": 1, "cancel": 1},
    "completed": {"take": 1, "unblock": 1, "plan": 1, "skip": 1, "cancel": 1},
}
BESIDE = {"use", "merge", "audit", "verify", "waive"}
KINDS = sorted({"complete", "settle", "fail", "release"}.union(BESIDE, *LIKELY.values()))
