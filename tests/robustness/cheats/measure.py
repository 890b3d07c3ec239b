"""Runs the corpus: every delivery is proven as `pointsman proof run` would, and what became of it is counted."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from pointsman._shared.git import git, text
from pointsman.proof.execution import CommandRunner, Furnishing
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover
from pointsman.proof.snapshot import Repository
from pointsman.proof.verdict import Decision, Defence, Wishes
from pointsman.sandbox import Limits
from tests.helpers.limits import scaled
from tests.robustness.cheats.honest import SHAPES, Shape
from tests.robustness.cheats.kinds import CHEATS, Cheat
from tests.robustness.cheats.tasks import Change, Task


@dataclass(frozen=True)
class Trial:
    """One delivery to be proven."""

    task: Task
    name: str
    change: Change
    group: str
    """`mechanical`, `behavioural` or `honest`."""
    with_held_out: bool = False
    tests_may_change: bool = False
    names_red_test: bool = True


@dataclass(frozen=True)
class Outcome:
    """What became of a trial."""

    trial: Trial
    decision: Decision
    grade: str
    reasons: tuple[str, ...]
    seconds: float
    bare_seconds: float


def cheat_trial(task: Task, cheat: Cheat, *, held_out: bool = False) -> Trial | None:
    """A cheat on a task; None where the ecosystem has no form of it."""
    change = cheat.make(task)
    if change is None:
        return None
    group = "behavioural" if cheat.behavioural else "mechanical"
    return Trial(task, cheat.name, change, f"{group}, held out" if held_out else group, held_out)


def honest_trial(task: Task, shape: Shape) -> Trial:
    """An honest delivery of a task."""
    names = shape.fixes and not task.is_feature
    return Trial(task, shape.name, shape.make(task), "honest", False, shape.tests_may_change, names)


def feature_trials(task: Task) -> Iterator[Trial]:
    """A feature done well, with its own tests, and one that only claims it."""
    yield Trial(task, "feature with its tests", {**task.solution, **task.own_tests()}, "honest", names_red_test=False)
    yield Trial(task, "feature without tests", task.solution, "honest", names_red_test=False)


def all_trials(bugs: Iterable[Task], features: Iterable[Task]) -> Iterator[Trial]:
    """Everything: each bug with each cheat and shape, each feature."""
    for task in bugs:
        yield from (honest_trial(task, shape) for shape in SHAPES)
        for cheat in CHEATS:
            trials = [cheat_trial(task, cheat)]
            trials += [cheat_trial(task, cheat, held_out=True)] if cheat.behavioural else []
            yield from (trial for trial in trials if trial is not None)
    for task in features:
        yield from feature_trials(task)


async def run_trial(trial: Trial, off: frozenset[Defence] = frozenset(), baselines: Baselines | None = None) -> Outcome:
    """Proves one delivery in a repository of its own."""
    with tempfile.TemporaryDirectory(prefix="cheats-") as place:
        folder = Path(place)
        base, delivered = await _commits(folder / "user", trial)
        repository = Repository(folder / "user" / ".git")
        runner = CommandRunner(repository, folder / "work", Furnishing(limits=Limits(seconds=scaled(120))))
        held_out = trial.task.held_out if trial.with_held_out else {}
        wishes = Wishes(
            fixes=(trial.task.red,) if trial.names_red_test else (),
            tests_may_change=trial.tests_may_change,
            held_out_files=tuple(held_out),
            off=off,
        )
        checks = {name: content.encode() for name, content in held_out.items()}
        request = ProofRequest(base, delivered, (trial.task.ecosystem.command,), wishes=wishes, held_out=checks)
        begun = monotonic()
        proof = await Prover(repository, runner, baselines or Baselines()).prove(request)
        return _outcome(trial, proof, monotonic() - begun)


def _outcome(trial: Trial, proof: Proof, seconds: float) -> Outcome:
    verdict = proof.verdict
    bare = sum(facts.restored.seconds for facts in proof.commands)
    told = (*verdict.reasons, *verdict.questions)
    return Outcome(trial, verdict.decision, str(verdict.grade), told, seconds, bare)


async def _commits(folder: Path, trial: Trial) -> tuple[str, str]:
    await git(folder.parent, "init", "-q", "-b", "main", str(folder))
    first = await _commit(folder, trial.task.base)
    return first, await _commit(folder, trial.change)


async def _commit(folder: Path, files: Mapping[str, str | None]) -> str:
    for name, content in files.items():
        _write(folder / name, content)
    await git(folder, "add", "-A", "-f")
    await git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    return await text(folder, "rev-parse", "HEAD")


def _write(path: Path, content: str | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.unlink()
    elif content.startswith("-> "):
        path.symlink_to(content[3:])
    else:
        path.write_text(content)
