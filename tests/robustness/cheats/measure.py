"""Runs the corpus: every delivery is proven as `pointsman proof run` would, and what became of it is counted."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from pointsman._shared.git import git, text
from pointsman.project import ProjectFile, ProofSection, WorkspaceSection
from pointsman.project.command_line import split_command
from pointsman.proof.comparison import compare
from pointsman.proof.execution import CommandRunner
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover
from pointsman.proof.snapshot import Repository
from pointsman.proof.verdict import CommandFacts, Decision, Defence, Facts, Wishes, judge
from pointsman.sandbox import supports_grades
from pointsman.worker.proof_environment import DeliveryNotInstallable, ProofBase, ProofEnvironments, pairs_after_seconds
from tests.helpers.limits import scaled
from tests.robustness.cheats import java
from tests.robustness.cheats.catalogue import CHEATS
from tests.robustness.cheats.honest import SHAPES, Shape
from tests.robustness.cheats.kinds import Cheat
from tests.robustness.cheats.tasks import Change, Task

EXECUTABLE = 0o755


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
    base: Change = field(default_factory=dict)
    """Further files that the work starts from."""
    command: tuple[str, ...] = ()
    red: str = ""
    seconds: float = 0.0
    repeat: int = 1
    setup: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Names the trial among all."""
        return f"{self.task.ecosystem.name}/{self.task.function.name}/{self.group}/{self.name}/{self.repeat}"


@dataclass(frozen=True)
class Outcome:
    """What became of a trial."""

    trial: Trial
    decision: Decision
    grade: str
    reasons: tuple[str, ...]
    seconds: float
    bare_seconds: float
    signals: tuple[str, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    """What would have been decided without each defence."""


def cheat_trial(task: Task, cheat: Cheat, *, held_out: bool = False) -> Trial | None:
    """A cheat on a task; None where the ecosystem has no form of it."""
    change = cheat.make(task)
    if change is None:
        return None
    group = "behavioural" if cheat.behavioural else "mechanical"
    return Trial(
        task,
        cheat.name,
        change,
        f"{group}, held out" if held_out else group,
        held_out,
        base=cheat.base(task) if cheat.base else {},
        command=cheat.command,
        red=cheat.red,
        seconds=cheat.seconds,
        setup=cheat.setup,
    )


def honest_trial(task: Task, shape: Shape) -> Trial:
    """An honest delivery of a task."""
    names = shape.fixes and not task.is_feature
    base = shape.base(task) if shape.base else {}
    return Trial(task, shape.name, shape.make(task), "honest", False, shape.tests_may_change, names, base)


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


def java_trials() -> Iterator[Trial]:
    """Bugs and features in Java, with cheats and shapes of its own."""
    for task in java.bugs():
        for name, make in java.HONEST.items():
            yield Trial(task, name, make(task), "honest", names_red_test=name not in java.FIX_NOTHING)
        yield from (Trial(task, name, make(task), "mechanical") for name, make in java.MECHANICAL.items())
        for name, make in java.BEHAVIOURAL.items():
            yield Trial(task, name, make(task), "behavioural")
            yield Trial(task, name, make(task), "behavioural, held out", with_held_out=True)
    for task in java.features():
        yield from feature_trials(task)


async def run_trial(
    trial: Trial, off: frozenset[Defence] = frozenset(), baselines: Baselines | None = None, root: Path | None = None
) -> Outcome:
    """Proves one delivery in a repository of its own; `root` keeps environments for the next."""
    with tempfile.TemporaryDirectory(prefix="cheats-") as place:
        folder = Path(place)
        base, delivered = await _commits(folder / "user", trial)
        await git(folder, "clone", "-q", "--bare", str(folder / "user"), str(folder / "user.git"))
        repository = Repository(folder / "user.git")
        setup = tuple(map(split_command, trial.setup or trial.task.ecosystem.setup))
        proof_section = ProofSection(timeout=int(scaled(trial.seconds or 120)))
        project = ProjectFile(workspace=WorkspaceSection(setup=setup), proof=proof_section)
        environments = ProofEnvironments(root or folder / "environments", (folder / "user",))
        furnish = environments.furnisher(ProofBase(repository, base, project), lambda _: None)
        runner = CommandRunner(repository, folder / "work", furnish, pairs_after_seconds(project))
        request = _request(trial, base, delivered, off)
        begun = monotonic()
        try:
            proof = await Prover(repository, runner, baselines or Baselines()).prove(request)
        except DeliveryNotInstallable as error:
            return Outcome(trial, Decision.REFUSED, "none", (str(error),), monotonic() - begun, 0.0)
        return _outcome(trial, proof, request.wishes, monotonic() - begun)


def _request(trial: Trial, base: str, delivered: str, off: frozenset[Defence]) -> ProofRequest:
    held_out = trial.task.held_out if trial.with_held_out else {}
    wishes = Wishes(
        fixes=(trial.red or trial.task.red,) if trial.names_red_test else (),
        tests_may_change=trial.tests_may_change,
        held_out_files=tuple(held_out),
        off=off,
    )
    return ProofRequest(
        base,
        delivered,
        (trial.command or trial.task.ecosystem.command,),
        wishes=wishes,
        held_out={name: content.encode() for name, content in held_out.items()},
        repeat=trial.repeat,
    )


def _outcome(trial: Trial, proof: Proof, wishes: Wishes, seconds: float) -> Outcome:
    verdict = proof.verdict
    bare = sum(facts.restored.seconds for facts in proof.commands)
    told = (*verdict.reasons, *verdict.questions)
    signals = tuple(f"signal: {signal.name}" for signal in proof.signals)
    without = {str(defence): str(decision) for defence, decision in decisions_without(proof, wishes).items()}
    return Outcome(trial, verdict.decision, str(verdict.grade), told, seconds, bare, signals, without)


def decisions_without(proof: Proof, wishes: Wishes) -> dict[Defence, Decision]:
    """What the same runs would have led to without each defence; a tree that was refused before any run stays refused."""
    found = dict.fromkeys(Defence, proof.verdict.decision)
    if not proof.commands:
        return found
    for defence in set(Defence) - {Defence.TREE_CHECKS}:
        commands = proof.commands
        if defence is Defence.BASE_TESTS:
            commands = tuple(_only_delivered(one) for one in commands)
        if defence is Defence.NEW_TESTS:
            commands = tuple(replace(one, new_tests_on_base=None) for one in commands)
        signals = () if defence is Defence.SIGNALS else proof.signals
        facts = Facts(proof.plan, commands, (), signals, supports_grades(proof.level))
        found[defence] = judge(facts, replace(wishes, off=frozenset({defence}))).decision
    return found


def _only_delivered(facts: CommandFacts) -> CommandFacts:
    """The same command with nothing but the author's tests."""
    compared = compare(facts.base.report, facts.delivered.report)
    return replace(facts, restored=facts.delivered, in_restored=compared)


async def _commits(folder: Path, trial: Trial) -> tuple[str, str]:
    await git(folder.parent, "init", "-q", "-b", "main", str(folder))
    (folder / ".git" / "info" / "attributes").write_text("* !working-tree-encoding !filter !eol !ident\n")
    first = await _commit(folder, {**trial.task.base, **trial.base})
    return first, await _commit(folder, trial.change)


async def _commit(folder: Path, files: Mapping[str, str | None]) -> str:
    for name, content in files.items():
        _write(folder / name, content)
    await git(folder, "add", "-A", "-f")
    await git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    return await text(folder, "rev-parse", "HEAD")


def _write(path: Path, content: str | None) -> None:
    if content is None:
        path.unlink()
        with suppress(OSError):
            path.parent.rmdir()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if content.startswith("-> "):
        path.unlink(missing_ok=True)
        path.symlink_to(content[3:])
    else:
        path.write_text(content)
        path.chmod(EXECUTABLE if content.startswith("#!") else path.stat().st_mode)
