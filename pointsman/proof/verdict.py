"""Judges a proof: refused, asked or accepted, with a grade, reasons and open risks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pointsman.proof.checks import Refused
from pointsman.proof.comparison import Comparison, excuses_exit_code
from pointsman.proof.execution import ProofRun
from pointsman.proof.protection.rules import Kind
from pointsman.proof.results import RED, Outcome
from pointsman.proof.signals import Signal
from pointsman.proof.tests_first import TestsFirst
from pointsman.proof.tree_plan import Change, TreePlan
from pointsman.sandbox import EndedBy

REPEATED = "in another order, folder and time"
NAMED = 5
"""How many names a sentence lists."""


class Grade(StrEnum):
    """What a result is worth."""

    NONE = "none"
    ON_WORD = "on_word"
    UNBROKEN = "unbroken"
    PROVEN = "proven"


class Defence(StrEnum):
    """What keeps a cheat from being paid; only the measurement of each defence switches one off."""

    TREE_CHECKS = "tree checks"
    BASE_TESTS = "base's tests"
    REPORTS = "whole reports"
    UNALTERED = "unaltered files"
    PER_TEST = "results per test"
    SIGNALS = "signals"
    NEW_TESTS = "red before green"


class Decision(StrEnum):
    """What follows from a proof."""

    REFUSED = "refused"
    ASKED = "asked"
    """A reviewer or person who is not the author has to say yes."""
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """One command on the base, on the delivery, and on the delivery with the base's protected files."""

    base: ProofRun
    delivered: ProofRun
    restored: ProofRun
    in_delivered: Comparison
    in_restored: Comparison
    new_tests_on_base: ProofRun | None = None
    held_out: ProofRun | None = None
    flaky: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    """Tests that pass once and fail when they are repeated in another order, folder and time."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asks of a proof."""

    fixes: tuple[str, ...] = ()
    tests_may_change: bool = False
    held_out_files: tuple[str, ...] = ()
    off: frozenset[Defence] = frozenset()
    """Defences that are switched off."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a proof found out."""

    plan: TreePlan
    commands: tuple[CommandFacts, ...] = ()
    refused: tuple[Refused, ...] = ()
    signals: tuple[Signal, ...] = ()
    isolated: bool = True
    first: TestsFirst = field(default_factory=TestsFirst)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word of a proof; `grade` is what the result is worth once every question is answered with yes."""

    decision: Decision
    grade: Grade
    reasons: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Findings:
    failures: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def judge(facts: Facts, wishes: Wishes) -> Verdict:
    """The verdict on a proof."""
    found = _Findings(failures=[str(one) for one in facts.refused])
    for command in facts.commands:
        _judge_command(command, facts, wishes, found)
    _judge_fixes(facts, wishes, found)
    if facts.first.altered:
        changed = f"tests that another author wrote before the code were changed: {names(facts.first.altered)}"
        (found.questions if wishes.tests_may_change else found.failures).append(changed)
    if found.failures or not facts.commands:
        reasons = tuple(found.failures) or ("there is no command that proves anything",)
        return Verdict(Decision.REFUSED, Grade.NONE, reasons, (), tuple(found.risks))
    grade = _grade(facts, found)
    _collect_risks(facts, found)
    questions = tuple(found.questions)
    return Verdict(
        Decision.ASKED if questions else Decision.ACCEPTED, grade, tuple(found.reasons), questions, tuple(found.risks)
    )


def failures_of(command: CommandFacts, facts: Facts, wishes: Wishes) -> tuple[str, ...]:
    """Why one command of a proof does not hold; empty when it does."""
    found = _Findings(failures=[str(one) for one in facts.refused])
    _judge_command(command, facts, wishes, found)
    return tuple(found.failures)


def _judge_command(command: CommandFacts, facts: Facts, wishes: Wishes, found: _Findings) -> None:
    _judge_restored(command, facts, wishes, found)
    _judge_delivered(command, facts, wishes, found)
    _judge_held_out(command, wishes, found)
    if command.unsteady:
        found.failures.append(f"tests pass once and fail when repeated ({REPEATED}): {names(command.unsteady)}")


def names(items: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return ", ".join(items[:NAMED]) + more


def _shown(run: ProofRun) -> str:
    return f"`{' '.join(run.command)}`"


def _own_problem(run: ProofRun, where: str, off: frozenset[Defence]) -> str:
    """Why a run proves nothing at all; empty when it does."""
    if not run.report.complete and Defence.REPORTS not in off:
        return f"{_shown(run)} {where}: {run.report.problem}"
    if run.result.ended_by is not EndedBy.ITSELF and Defence.REPORTS not in off:
        return f"{_shown(run)} {where}: {run.result.reason}"
    if run.altered and Defence.UNALTERED not in off:
        return f"{_shown(run)} {where} altered tracked files while it ran: {names(run.altered)}"
    return ""


def _exit_problem(run: ProofRun, base: ProofRun, comparison: Comparison, where: str) -> str:
    if run.ended_well or excuses_exit_code(comparison, run.report):
        return ""
    same = not base.ended_well and not base.report.red and not run.report.red
    if same and base.result.exit_code == run.result.exit_code:
        return ""
    return f"{_shown(run)} {where}: {run.result.reason}, and tests that failed before do not explain it"


def _judge_restored(command: CommandFacts, facts: Facts, wishes: Wishes, found: _Findings) -> None:
    """The base's own tests on the delivered sources: nothing green may be red, missing or left out."""
    run, compared = command.restored, command.in_restored
    where = "with the base's tests" if facts.plan.protected else "on the delivery"
    problems = [
        problem for problem in (_own_problem(run, where, wishes.off), *_lost(compared, where, wishes.off)) if problem
    ]
    if not problems and (problem := _exit_problem(run, command.base, compared, where)):
        problems = [problem]
    if not problems and run.report.exit_code_only and not run.ended_well:
        if _own_files(run.command, facts.plan) and command.delivered.ended_well:
            found.risks.append(f"only a file of the author shows it: {names(_own_files(run.command, facts.plan))}")
            return
        problems = [f"{_shown(run)} fails as it did on the base, and nothing says which of its tests"]
    if not problems:
        return
    if wishes.tests_may_change and facts.plan.protected and run.report.complete:
        found.questions += [f"tests may change in this task: {problem}" for problem in problems]
    else:
        found.failures += problems


def _lost(compared: Comparison, where: str, off: frozenset[Defence]) -> list[str]:
    if Defence.PER_TEST in off:
        return []
    message = (
        (compared.regressions, "passed on the base and fail"),
        (compared.removed, "ran on the base and are gone"),
        (compared.newly_not_run, "ran on the base and are skipped or left out"),
    )
    return [f"tests {what} {where}: {names(ids)}" for ids, what in message if ids]


def _judge_delivered(command: CommandFacts, facts: Facts, wishes: Wishes, found: _Findings) -> None:
    """The delivery as it is: the author's own tests must hold as well."""
    if command.delivered is command.restored:
        return
    run, compared = command.delivered, command.in_delivered
    if problem := _own_problem(run, "on the delivery", wishes.off):
        found.failures.append(problem)
        return
    if compared.regressions:
        found.failures.append(f"tests passed on the base and fail on the delivery: {names(compared.regressions)}")
    if compared.added_red:
        message = f"new tests fail on the delivery: {names(compared.added_red)}"
        (found.questions if wishes.tests_may_change and facts.plan.tests_only else found.failures).append(message)
    elif problem := _exit_problem(run, command.base, compared, "on the delivery"):
        found.failures.append(problem)
    _judge_changed_tests(command, facts, wishes, found)


def _own_files(command: Sequence[str], plan: TreePlan) -> list[str]:
    """Files that a command names and that the author added."""
    added = {change.path for change in plan.protected if change.change is Change.ADDED}
    return sorted(added & {word.removeprefix("./") for word in command})


def _names_file(test_id: str, path: str) -> bool:
    """Whether an id stands for a whole file, by its path or as a module."""
    return test_id == path or path.rpartition(".")[0].replace("/", ".") == test_id


def _judge_changed_tests(command: CommandFacts, facts: Facts, wishes: Wishes, found: _Findings) -> None:
    """What the author did to tests: nothing may be hidden by it, and what is gone is named."""
    compared = command.in_delivered
    added = [change.path for change in facts.plan.protected if change.change is Change.ADDED]
    if masked := [test for test in _masked(command) if not any(_names_file(test, path) for path in added)]:
        message = f"tests fail with the base's files and only the author's changes of tests hide it: {names(masked)}"
        (found.questions if wishes.tests_may_change else found.failures).append(message)
    if compared.removed:
        found.risks.append(f"the author removed tests, which pass when put back: {names(compared.removed)}")
    if compared.newly_not_run:
        found.risks.append(f"the author skips tests, which pass when put back: {names(compared.newly_not_run)}")


def _masked(command: CommandFacts) -> list[str]:
    """Tests that are red with the base's files and neither red nor renamed in the delivery."""
    renamed = command.in_delivered.renamed or {}
    now = command.delivered.report
    return sorted(
        test.id for test in command.restored.report.red if now.outcome(renamed.get(test.id, test.id)) not in RED
    )


def _judge_held_out(command: CommandFacts, wishes: Wishes, found: _Findings) -> None:
    """Held-out checks; what they are called stays with the judges."""
    if command.held_out is None:
        return
    run = command.held_out
    checks = [
        test
        for test in run.report.tests.values()
        if test.id not in command.restored.report.tests or test.file in wishes.held_out_files
    ]
    executed = [test for test in checks if test.outcome in {Outcome.PASSED, Outcome.FAILED, Outcome.ERROR}]
    red = [
        number
        for number, test in enumerate(sorted(executed, key=lambda one: one.id), 1)
        if test.outcome is not Outcome.PASSED
    ]
    if not run.report.complete or (not executed and not run.report.exit_code_only):
        found.failures.append("the held-out checks did not run to their end")
    elif red:
        found.failures.append(f"held-out check {names([str(number) for number in red])} of {len(executed)} failed")
    elif run.report.exit_code_only and not run.ended_well:
        found.failures.append("the held-out checks failed")


def _judge_fixes(facts: Facts, wishes: Wishes, found: _Findings) -> None:
    for wanted in wishes.fixes:
        now = [
            outcome
            for command in facts.commands
            for run in (command.restored, command.delivered)
            if (outcome := run.report.outcome(wanted)) is not None
        ]
        if not now:
            found.failures.append(f"the test that was to be fixed did not run: {wanted}")
        elif now[0] is not Outcome.PASSED:
            found.failures.append(f"the test that was to be fixed does not pass: {wanted} is {now[0]}")


def _grade(facts: Facts, found: _Findings) -> Grade:
    fixed = list(dict.fromkeys(test for command in facts.commands for test in command.in_restored.fixed))
    held_out = [command for command in facts.commands if command.held_out is not None]
    grade = Grade.UNBROKEN
    if held_out:
        grade = Grade.PROVEN
        found.reasons.append("the held-out checks pass")
    if fixed:
        grade = Grade.PROVEN
        found.reasons.append(f"tests failed on the base and pass now: {names(fixed)}")
    if not any(command.restored.report.executed or command.delivered.report.executed for command in facts.commands):
        found.questions.append("no test ran, so nothing is proven")
        return Grade.ON_WORD
    if grade is Grade.UNBROKEN:
        grade = _unproven(facts, found)
    if not facts.isolated:
        found.reasons.append("commands ran without isolation, so the result is worth no more than a word")
        return Grade.ON_WORD
    return grade


def _unproven(facts: Facts, found: _Findings) -> Grade:
    """The grade where no red test turned green: what nothing but the author's own tests shows."""
    found.reasons.append("nothing that passed on the base fails now")
    if facts.plan.documents_only:
        return Grade.UNBROKEN
    if facts.plan.tests_only:
        found.questions.append("only tests changed; somebody who did not write them has to say that they are right")
        return Grade.ON_WORD
    shown, vacuous = _new_tests(facts)
    if others := [test for test in shown if _is_of_another(test, facts)]:
        found.reasons.append(
            f"tests that another author wrote first fail without the code and pass now: {names(others)}"
        )
        return Grade.PROVEN
    if shown:
        found.reasons.append(f"the author's new tests fail on the base's sources and pass now: {names(shown)}")
    elif vacuous:
        found.risks.append(f"the author's new tests pass on the base as well, so they show no change: {names(vacuous)}")
    else:
        found.risks.append("no test shows what was changed" if facts.plan.changes_files else "nothing was changed")
    return Grade.UNBROKEN


def _is_of_another(test_id: str, facts: Facts) -> bool:
    """Whether a new test is one that another author wrote before the code."""
    found = (command.delivered.report.tests.get(test_id) for command in facts.commands)
    return not facts.first.altered and any(test is not None and facts.first.holds(test) for test in found)


def _new_tests(facts: Facts) -> tuple[list[str], list[str]]:
    """The author's new tests that fail on the base's sources, and those that pass there too."""
    shown: list[str] = []
    vacuous: list[str] = []
    for command in facts.commands:
        if command.new_tests_on_base is None:
            continue
        before = command.new_tests_on_base.report
        for test in command.in_delivered.added:
            if command.delivered.report.outcome(test) is Outcome.PASSED:
                (vacuous if before.outcome(test) is Outcome.PASSED else shown).append(test)
    return shown, vacuous


def _collect_risks(facts: Facts, found: _Findings) -> None:
    found.questions += [str(signal) for signal in facts.signals if signal.asks]
    found.risks += [str(signal) for signal in facts.signals if not signal.asks]
    if facts.plan.dependencies:
        found.risks.append(f"dependencies changed and come from the delivery: {names(facts.plan.dependencies)}")
    ci = [change.path for change in facts.plan.protected if change.kind is Kind.CI]
    if ci:
        found.risks.append(f"what continuous integration runs was changed: {names(ci)}")
    for command in facts.commands:
        if command.restored.report.exit_code_only:
            found.risks.append(f"{_shown(command.restored)} counts by its exit code only; no adapter reads its tests")
        if command.flaky:
            found.risks.append(f"tests failed once and passed when run again: {names(command.flaky)}")
        if command.in_restored.still_red:
            found.risks.append(f"tests fail as they did on the base: {names(command.in_restored.still_red)}")
        sources = [test.id for test in command.restored.report.tests.values() if test.in_source]
        if sources:
            found.risks.append(f"tests stand in sources, which the author may change: {names(sources)}")
