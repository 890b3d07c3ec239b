"""Proves a delivery: runs the base, the delivery, and the delivery with the base's protected files, and judges."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pointsman._shared.git import GitFailed
from pointsman.proof.adapters.instrument import SelectedTests, Variation
from pointsman.proof.checks import Refused, check_shadows, check_tree
from pointsman.proof.command_files import Settings, named_files
from pointsman.proof.comparison import Comparison, compare, compare_restored
from pointsman.proof.execution import CommandRunner, ProofRun, Purpose
from pointsman.proof.held_out import own_checks
from pointsman.proof.manifest_checks import check_manifests, is_manifest
from pointsman.proof.protection.rules import ProtectionTable, default_table
from pointsman.proof.renames import TestSources, find_renames
from pointsman.proof.results import RED, Outcome, TestReport, TestResult
from pointsman.proof.signals import Edit, Signal, scan
from pointsman.proof.snapshot import FILE, SYMLINK, Repository, Snapshot
from pointsman.proof.tests_first import TestsFirst, tests_first
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
    first: tuple[str, str] | None = None
    """A commit with tests that another author wrote before the code, behind the base that it was made on."""


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
    """Runs of commands on trees of the base, cached by tree and command: waves and retries share them."""

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


@dataclass(slots=True)
class _Repeated:
    """Tests that failed when the command was repeated: those that may, and those that show that nothing is proven."""

    flaky: set[str] = field(default_factory=set)
    unsteady: set[str] = field(default_factory=set)


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
        table = table.extended(tests=sorted(set(test_files) & set(base.entries)))
        plan = await plan_trees(self._repository, base, delivered, table)
        shadows = () if Defence.TREE_CHECKS in off else await self._shadows(plan, base_runs)
        if shadows:
            return Proof(judge(Facts(plan, refused=shadows), request.wishes), plan, ())
        if Defence.BASE_TESTS in off:
            plan = replace(plan, restored={}, removed=frozenset())
        try:
            commands = [_watched(await self._command(request, plan, run), table) for run in base_runs]
        except GitFailed as error:
            unwritable = Refused("the delivery", f"its files cannot be written to a folder: {error}")
            return Proof(judge(Facts(plan, refused=(unwritable,)), request.wishes), plan, ())
        signals = () if Defence.SIGNALS in off else await self._signals(plan, commands)
        level = min((command.restored.result.level for command in commands), default=Level.NONE)
        first = await self._tests_first(request, plan, table)
        facts = Facts(plan, tuple(commands), (), signals, supports_grades(level), first)
        failures = {one.base.command: failures_of(one, facts, request.wishes) for one in commands}
        return Proof(judge(facts, request.wishes), plan, tuple(commands), signals, level, failures)

    async def _tests_first(self, request: ProofRequest, plan: TreePlan, table: ProtectionTable) -> TestsFirst:
        """What became of the tests that another author wrote before the code."""
        if not request.first:
            return TestsFirst()
        base, written = [await self._repository.snapshot(commit) for commit in request.first]
        return await tests_first(self._repository, await plan_trees(self._repository, base, written, table), plan)

    async def _refused(self, base: Snapshot, delivered: Snapshot) -> tuple[Refused, ...]:
        links = [path for path, entry in delivered.entries.items() if entry.mode == SYMLINK]
        targets = {path: await self._repository.read(delivered.entries[path]) or b"" for path in links}
        named = {path: target.decode(errors="replace") for path, target in targets.items()}
        return (*check_tree(base, delivered, named), *check_manifests(await self._manifests(base, delivered)))

    async def _manifests(self, base: Snapshot, delivered: Snapshot) -> dict[str, tuple[bytes, bytes]]:
        """Changed manifests, before and after."""
        changed = [path for path in base.changed_to(delivered) if is_manifest(path) and path in delivered.entries]
        return {
            path: (
                await self._repository.read(base.entries.get(path)) or b"",
                await self._repository.read(delivered.entries[path]) or b"",
            )
            for path in changed
        }

    async def _shadows(self, plan: TreePlan, base_runs: Sequence[ProofRun]) -> tuple[Refused, ...]:
        """New modules that would stand for what the tests of the base import from elsewhere."""
        files = {
            test.file for run in base_runs for test in run.report.executed if test.outcome is not Outcome.ERROR
        } & set(plan.base.entries)
        return check_shadows(plan.base, plan.delivered, (await self._texts(plan.base, files)).values())

    async def _base_run(self, base: Snapshot, command: Sequence[str]) -> ProofRun:
        found = self._baselines.find(base.tree, command)
        if found is None:
            found = await self._runner.run(Purpose.BASE, base, command)
            self._baselines.keep(found)
        return found

    async def _command(self, request: ProofRequest, plan: TreePlan, base: ProofRun) -> CommandFacts:
        """Everything about one command: the base's tests first, so that the author's cannot prepare anything for them."""
        tree = await restored_tree(self._repository, plan)
        begun = await self._first_runs(tree, plan, base)
        restored, flaky = await self._stable(begun[Purpose.RESTORED], tree, base)
        repeated = await self._repeated(plan.base, tree, base, restored, request.repeat)
        delivered, flaky_too = restored, tuple[str, ...]()
        if restored.tree != plan.delivered.tree:
            delivered, flaky_too = await self._stable(begun[Purpose.DELIVERED], plan.delivered, base)
        renames = await self._renames(plan, base.report, delivered.report)
        in_delivered = compare(base.report, delivered.report, renames)
        return CommandFacts(
            base=base,
            delivered=delivered,
            restored=restored,
            in_delivered=in_delivered,
            in_restored=compare_restored(base.report, restored.report),
            new_tests_on_base=None
            if Defence.NEW_TESTS in request.wishes.off
            else await self._new_tests_on_base(plan, base, delivered, in_delivered),
            held_out=await self._held_out(request, plan, base.command, restored.report.tests),
            flaky=tuple(sorted({*flaky, *flaky_too, *repeated.flaky})),
            unsteady=tuple(sorted(repeated.unsteady)),
        )

    async def _first_runs(self, tree: Snapshot, plan: TreePlan, base: ProofRun) -> dict[Purpose, ProofRun]:
        """The command with the base's tests and on the delivery: at the same time where neither can see the other.

        Where only tests changed, the base's tests on the delivered sources are the base itself, which was run.
        """
        trees = {Purpose.RESTORED: tree, Purpose.DELIVERED: plan.delivered}
        if tree.tree == plan.delivered.tree:
            del trees[Purpose.DELIVERED]
        if tree.tree == plan.base.tree:
            del trees[Purpose.RESTORED]
        after = self._runner.pairs_after_seconds
        in_pairs = after is not None and base.seconds >= after
        turns = [list(trees.items())] if in_pairs else [[one] for one in trees.items()]
        found = {} if Purpose.RESTORED in trees else {Purpose.RESTORED: replace(base, purpose=Purpose.RESTORED)}
        for turn in turns:
            runs = await asyncio.gather(*(self._runner.run(purpose, one, base.command) for purpose, one in turn))
            found |= {run.purpose: run for run in runs}
        return found

    async def _stable(self, run: ProofRun, tree: Snapshot, base: ProofRun) -> tuple[ProofRun, tuple[str, ...]]:
        """A run, or a second one, alone, where it does not hold; what passes the second time is flaky."""
        if _holds(run, base):
            return run, ()
        again = await self._runner.run(run.purpose, tree, base.command)
        if _holds(again, base):
            return again, _recovered(run.report, again.report) or (" ".join(base.command),)
        return run, ()

    async def _repeated(self, start: Snapshot, tree: Snapshot, base: ProofRun, run: ProofRun, repeat: int) -> _Repeated:
        """Runs the base's tests again in another order, folder and time.

        A test that was to be fixed has to pass each time. One that passed on the base may fail once, or where it fails on
        the base in that order and time as well; both are named.
        """
        found = _Repeated()
        for variation in variations(tree.tree, repeat):
            other = await self._runner.run(Purpose.RESTORED, tree, base.command, variation=variation)
            if not (lost := _lost(run.report, other.report)):
                continue
            again = await self._runner.run(Purpose.RESTORED, tree, base.command, variation=variation)
            same = await self._runner.run(Purpose.BASE, start, base.command, variation=variation)
            excused = (lost - _lost(run.report, again.report)) | _lost(base.report, same.report)
            was_green = {test.id for test in base.report.executed if test.outcome is Outcome.PASSED}
            found.flaky |= lost & excused & was_green
            found.unsteady |= lost - (excused & was_green)
        return found

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

    async def _held_out(
        self, request: ProofRequest, plan: TreePlan, command: Sequence[str], known: Mapping[str, TestResult]
    ) -> ProofRun | None:
        if not request.held_out:
            return None
        start = await restored_tree(self._repository, plan)
        put = {path: await self._repository.store(content, FILE) for path, content in request.held_out.items()}
        tree = await self._repository.compose(start, put, frozenset())
        run = await self._runner.run(Purpose.HELD_OUT, tree, command)
        return replace(run, report=own_checks(run.report, request.held_out, known))

    async def _signals(self, plan: TreePlan, commands: Sequence[CommandFacts]) -> tuple[Signal, ...]:
        changed = plan.sources[:MAX_SIGNAL_FILES]
        edits = {
            path: Edit(
                *await self._repository.changed_lines(plan.base.tree, plan.delivered.tree, path),
                before=(await self._texts(plan.base, {path})).get(path, ""),
            )
            for path in changed
        }
        red = {test.file for command in commands for test in command.base.report.tests.values() if test.outcome in RED}
        tests = await self._texts(plan.base, red - {""})
        return scan(edits, "\n".join(tests.values()))


async def protection_of(
    repository: Repository, trees: tuple[Snapshot, Snapshot], commands: Sequence[Sequence[str]], protect: Sequence[str]
) -> ProtectionTable:
    """The table of protected files: the distribution's, the project's own, and what commands and settings of the base name."""
    base, delivered = trees
    texts = {
        path: (await repository.read(base.entries[path]) or b"").decode(errors="replace")
        for path in Settings.paths(base.entries)
    }
    settings = Settings(frozenset({*base.entries, *delivered.entries}), texts)
    found = {name for command in commands for name in named_files(command, settings)}
    while scripts := {path for path in found if path in base.entries and Settings.is_script(path)} - texts.keys():
        texts |= {path: (await repository.read(base.entries[path]) or b"").decode(errors="replace") for path in scripts}
        found |= {name for path in scripts for name in settings.started_by(path)}
    return default_table().extended(protect, sorted(found))


def variations(tree: str, repeat: int) -> tuple[Variation, ...]:
    """How the runs after the first differ; the numbers follow from the tree, so that a proof can be repeated."""
    digests = [hashlib.sha256(f"{tree} {number}".encode()).digest() for number in range(1, repeat)]
    return tuple(Variation(int.from_bytes(one[:4]) % 2**31 + 1, 30 + one[4] * 16) for one in digests)


def _watched(facts: CommandFacts, table: ProtectionTable) -> CommandFacts:
    """The runs with the protected files that were rewritten while they ran, also if they were put back at the end."""

    def watched(run: ProofRun) -> ProofRun:
        judges = [path for path in run.touched if path not in facts.base.touched and _is_judge(table, path)]
        return replace(run, altered=tuple(sorted({*run.altered, *judges})))

    restored = watched(facts.restored)
    is_same = facts.delivered is facts.restored
    return replace(facts, restored=restored, delivered=restored if is_same else watched(facts.delivered))


def _is_judge(table: ProtectionTable, path: str) -> bool:
    found = table.protection(path)
    return found is not None and found.manifest is None


def base_files(report: TestReport) -> set[str]:
    """Files that hold tests of a report."""
    return {test.file for test in report.tests.values() if test.file}


def _holds(run: ProofRun, base: ProofRun) -> bool:
    """Whether nothing in a run is worse than on the base."""
    worse = _worse(compare(base.report, run.report))
    return run.report.complete and not worse and (run.ended_well or bool(run.report.red))


def _worse(compared: Comparison) -> tuple[str, ...]:
    return (*compared.regressions, *compared.added_red, *compared.removed, *compared.newly_not_run)


def _lost(before: TestReport, after: TestReport) -> set[str]:
    """Tests that passed before and do not now."""
    return {
        test.id
        for test in before.executed
        if test.outcome is Outcome.PASSED and after.outcome(test.id) is not Outcome.PASSED
    }


def _recovered(first: TestReport, second: TestReport) -> tuple[str, ...]:
    def is_red(test: TestResult | None) -> bool:
        return test is None or test.outcome in RED

    return tuple(sorted(key for key in second.tests if is_red(first.tests.get(key)) and not is_red(second.tests[key])))
