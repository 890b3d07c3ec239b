"""Proves a delivery: runs the base, the delivery, and the delivery with the base's protected files, and judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pointsman.proof.adapters.instrument import SelectedTests
from pointsman.proof.checks import Refused, check_tree
from pointsman.proof.command_files import named_files, read_scripts
from pointsman.proof.comparison import Comparison, compare
from pointsman.proof.execution import CommandRunner, ProofRun, Purpose
from pointsman.proof.protection.rules import ProtectionTable, default_table
from pointsman.proof.renames import TestSources, find_renames
from pointsman.proof.results import RED, Outcome, TestReport, TestResult
from pointsman.proof.signals import Signal, scan
from pointsman.proof.snapshot import FILE, SYMLINK, Repository, Snapshot
from pointsman.proof.tree_plan import TreePlan, plan_trees, restored_tree, tried_tree
from pointsman.proof.verdict import CommandFacts, Defence, Facts, Verdict, Wishes, failures_of, judge
from pointsman.sandbox import Level, supports_grades

MAX_SIGNAL_FILES = 500


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """What is to be proven: a delivered commit over its base, by commands."""

    base: str
    delivered: str
    commands: tuple[tuple[str, ...], ...]
    protect: tuple[str, ...] = ()
    wishes: Wishes = field(default_factory=Wishes)
    held_out: Mapping[str, bytes] = field(default_factory=dict)
    """Checks that the author never saw, by path; laid over the tree at proof time only."""
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict, and everything it rests on."""

    verdict: Verdict
    plan: TreePlan
    commands: tuple[CommandFacts, ...]
    signals: tuple[Signal, ...] = ()
    level: Level = Level.NONE
    failures: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """Why each command does not hold; empty for one that does."""


class Baselines:
    """Runs of commands on trees of the base, kept by tree and command: waves and retries share them."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, tuple[str, ...]], ProofRun] = {}

    def find(self, tree: str, command: Sequence[str]) -> ProofRun | None:
        """An earlier run on the same tree."""
        return self._runs.get((tree, tuple(command)))

    def keep(self, run: ProofRun) -> None:
        """Keeps a run on the base, or on a tree that was accepted and is the next base."""
        self._runs[run.tree, run.command] = replace(run, purpose=Purpose.BASE)

    def keep_accepted(self, proof: "Proof") -> None:
        """Keeps what ran on a delivered tree that was accepted, because it is the next base."""
        for facts in proof.commands:
            if facts.delivered.tree == proof.plan.delivered.tree:
                self.keep(facts.delivered)


class Prover:
    """Proves deliveries of one repository."""

    def __init__(self, repository: Repository, runner: CommandRunner, baselines: Baselines | None = None) -> None:
        self._repository = repository
        self._runner = runner
        self._baselines = baselines or Baselines()

    async def prove(self, request: ProofRequest) -> Proof:
        """The proof of a delivery; nothing is run when the tree itself is refused."""
        base = await self._repository.snapshot(request.base)
        delivered = await self._repository.snapshot(request.delivered)
        table = await protection_of(self._repository, (base, delivered), request.commands, request.protect)
        off = request.wishes.off
        refused = () if Defence.TREE_CHECKS in off else await self._refused(base, delivered)
        if refused:
            plan = await plan_trees(self._repository, base, delivered, table)
            return Proof(judge(Facts(plan, refused=refused), request.wishes), plan, ())
        base_runs = [await self._base_run(base, command) for command in request.commands]
        test_files = [
            test.file for run in base_runs for test in run.report.tests.values() if test.file and not test.in_source
        ]
        plan = await plan_trees(
            self._repository, base, delivered, table.extended(tests=sorted(set(test_files) & set(base.entries)))
        )
        if Defence.BASE_TESTS in off:
            plan = replace(plan, restored={}, removed=frozenset())
        commands = [await self._command(request, plan, run) for run in base_runs]
        signals = () if Defence.SIGNALS in off else await self._signals(plan, commands)
        level = min((command.restored.result.level for command in commands), default=Level.NONE)
        facts = Facts(plan, tuple(commands), (), signals, supports_grades(level))
        failures = {one.base.command: failures_of(one, facts, request.wishes) for one in commands}
        return Proof(judge(facts, request.wishes), plan, tuple(commands), signals, level, failures)

    async def _refused(self, base: Snapshot, delivered: Snapshot) -> tuple[Refused, ...]:
        links = [path for path, entry in delivered.entries.items() if entry.mode == SYMLINK]
        targets = {path: await self._repository.read(delivered.entries[path]) or b"" for path in links}
        return check_tree(base, delivered, {path: target.decode(errors="replace") for path, target in targets.items()})

    async def _base_run(self, base: Snapshot, command: Sequence[str]) -> ProofRun:
        found = self._baselines.find(base.tree, command)
        if found is None:
            found = await self._runner.run(Purpose.BASE, base, command)
            self._baselines.keep(found)
        return found

    async def _command(self, request: ProofRequest, plan: TreePlan, base: ProofRun) -> CommandFacts:
        """Everything about one command: the base's tests first, so that the author's cannot prepare anything for them."""
        restored, flaky = await self._stable(
            Purpose.RESTORED, await restored_tree(self._repository, plan), base, request.repeat
        )
        delivered, flaky_too = restored, tuple[str, ...]()
        if restored.tree != plan.delivered.tree:
            delivered, flaky_too = await self._stable(Purpose.DELIVERED, plan.delivered, base, 1)
        renames = await self._renames(plan, base.report, delivered.report)
        in_delivered = compare(base.report, delivered.report, renames)
        return CommandFacts(
            base=base,
            delivered=delivered,
            restored=restored,
            in_delivered=in_delivered,
            in_restored=compare(base.report, restored.report),
            new_tests_on_base=None
            if Defence.NEW_TESTS in request.wishes.off
            else await self._new_tests_on_base(plan, base, delivered, in_delivered),
            held_out=await self._held_out(request, plan, base.command),
            flaky=tuple(sorted({*flaky, *flaky_too})),
        )

    async def _stable(
        self, purpose: Purpose, tree: Snapshot, base: ProofRun, repeat: int
    ) -> tuple[ProofRun, tuple[str, ...]]:
        """Runs a command, again when it does not hold, and as often as is asked; what passes the second time is flaky."""
        run = await self._runner.run(purpose, tree, base.command)
        if not _holds(run, base):
            again = await self._runner.run(purpose, tree, base.command)
            if _holds(again, base):
                return again, _recovered(run.report, again.report) or (" ".join(base.command),)
            return run, ()
        for _ in range(repeat - 1):
            other = await self._runner.run(purpose, tree, base.command)
            if not _holds(other, base):
                return other, ()
        return run, ()

    async def _renames(self, plan: TreePlan, base: TestReport, delivered: TestReport) -> dict[str, str]:
        gone = [test for key, test in base.tests.items() if key not in delivered.tests]
        if not gone:
            return {}
        moved = await self._repository.moved(plan.base.tree, plan.delivered.tree)
        before = await self._texts(plan.base, {test.file for test in gone})
        after = await self._texts(plan.delivered, {test.file for test in delivered.tests.values()})
        return find_renames(base, delivered, TestSources(before, after, moved))

    async def _texts(self, snapshot: Snapshot, paths: set[str]) -> dict[str, str]:
        found = {
            path: await self._repository.read(snapshot.entries.get(path)) for path in paths if path in snapshot.entries
        }
        return {path: content.decode(errors="replace") for path, content in found.items() if content is not None}

    async def _new_tests_on_base(
        self, plan: TreePlan, base: ProofRun, delivered: ProofRun, compared: Comparison
    ) -> ProofRun | None:
        """The author's new tests on the base's sources, where they have to fail."""
        passing = [test for test in compared.added if delivered.report.outcome(test) is Outcome.PASSED]
        if not passing or not plan.sources:
            return None
        files = {delivered.report.tests[test].file for test in passing} - {""}
        tree = await tried_tree(self._repository, plan)
        selected = SelectedTests(ids=passing, files=sorted(files - set(base_files(base.report))))
        return await self._runner.run(Purpose.NEW_TESTS_ON_BASE, tree, base.command, selected)

    async def _held_out(self, request: ProofRequest, plan: TreePlan, command: Sequence[str]) -> ProofRun | None:
        if not request.held_out:
            return None
        start = await restored_tree(self._repository, plan)
        put = {path: await self._repository.store(content, FILE) for path, content in request.held_out.items()}
        return await self._runner.run(
            Purpose.HELD_OUT, await self._repository.compose(start, put, frozenset()), command
        )

    async def _signals(self, plan: TreePlan, commands: Sequence[CommandFacts]) -> tuple[Signal, ...]:
        changed = [path for path in plan.sources if path in plan.delivered.entries][:MAX_SIGNAL_FILES]
        added = {
            path: await self._repository.added_lines(plan.base.tree, plan.delivered.tree, path) for path in changed
        }
        red = {test.file for command in commands for test in command.base.report.tests.values() if test.outcome in RED}
        tests = await self._texts(plan.base, red - {""})
        return scan(added, "\n".join(tests.values()))


async def protection_of(
    repository: Repository, trees: tuple[Snapshot, Snapshot], commands: Sequence[Sequence[str]], protect: Sequence[str]
) -> ProtectionTable:
    """The table of protected files: the distribution's, the project's own, and what the commands of the base start."""
    base, delivered = trees
    paths = {*base.entries, *delivered.entries}
    scripts = read_scripts(await repository.read(base.entries.get("package.json")))
    makefile = (await repository.read(base.entries.get("Makefile")) or b"").decode(errors="replace")
    files = [name for command in commands for name in named_files(command, paths, scripts, makefile)]
    return default_table().extended(protect, sorted(set(files)))


def base_files(report: TestReport) -> set[str]:
    """Files that hold tests of a report."""
    return {test.file for test in report.tests.values() if test.file}


def _holds(run: ProofRun, base: ProofRun) -> bool:
    """Whether nothing in a run is worse than on the base."""
    compared = compare(base.report, run.report)
    worse = (*compared.regressions, *compared.added_red, *compared.removed, *compared.newly_not_run)
    return run.report.complete and not worse and (run.ended_well or bool(run.report.red))


def _recovered(first: TestReport, second: TestReport) -> tuple[str, ...]:
    def is_red(test: TestResult | None) -> bool:
        return test is None or test.outcome in RED

    return tuple(sorted(key for key in second.tests if is_red(first.tests.get(key)) and not is_red(second.tests[key])))
