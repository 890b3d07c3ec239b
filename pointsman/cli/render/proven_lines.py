"""A proof that a run holds, as lines of text: what it is worth, over which base, and what each test and file did."""

from collections.abc import Iterator

from pointsman.api.handoff.v1.handoff_pb2 import FileChange
from pointsman.api.handoff.v1.proof_pb2 import (
    TEST_OUTCOME_PASSED,
    TEST_OUTCOME_UNSPECIFIED,
    Proof,
    ProofCommand,
    ProtectedChange,
    TestOutcome,
)
from pointsman.cli.render.progress_lines import grade_text
from pointsman.cli.render.transition_lines import shortened
from pointsman.proof.verdict import NAMED, names

SHOWN_TESTS = 40


def proven_lines(proof: Proof) -> Iterator[str]:
    """Everything about a proof that people ask for."""
    once = ", made in the TEST stage" if proof.reused else ""
    worth = grade_text(proof.grade) or ", refused"
    yield f"proof{worth}, isolation {proof.isolation}, base {proof.base_commit[:12]}, tree {proof.tree_hash[:12]}{once}"
    for word, sentences in (("because", proof.reasons), ("asks", proof.questions), ("open risk", proof.risks)):
        yield from (f"  {word}: {shortened(sentence)}" for sentence in sentences)
    yield from (f"  {_protected(change)}" for change in proof.protected_changes)
    for command in proof.commands:
        yield from (f"  {line}" for line in _command(command))
    if proof.HasField("held_out_output"):
        yield f"  held-out checks printed {proof.held_out_output.sha256[:12]} (for judges)"


def rests_on(proof: Proof) -> Iterator[str]:
    """In a few lines what a grade rests on: the base, what ran, tests that turned green, protected files."""
    yield f"over base {proof.base_commit[:12]}, isolation {proof.isolation}"
    for command in proof.commands:
        yield _ran(command)
        if green := [test.id for test in command.tests if test.outcome == TEST_OUTCOME_PASSED]:
            yield f"  pass now and did not before: {names(green)}"
    yield from (_protected(change) for change in proof.protected_changes[:NAMED])
    if len(proof.protected_changes) > NAMED:
        yield f"and {len(proof.protected_changes) - NAMED} more protected files"


def changed(change: FileChange.ValueType) -> str:
    """What was done to a file, in a word."""
    return FileChange.Name(change).removeprefix("FILE_CHANGE_").lower()


def _protected(change: ProtectedChange) -> str:
    keys = f", keys {', '.join(change.keys)}" if change.keys else ""
    return f"protected file {changed(change.change)}: {change.path} ({change.kind}{keys}: {change.why})"


def _command(command: ProofCommand) -> Iterator[str]:
    yield _ran(command)
    for test in command.tests[:SHOWN_TESTS]:
        said = f": {shortened(test.message)}" if test.message else ""
        yield f"  test {test.id}: {_outcome(test.outcome)}, before {_outcome(test.before)}{said}"
    if len(command.tests) > SHOWN_TESTS:
        yield f"  and {len(command.tests) - SHOWN_TESTS} more tests"
    yield from (f"  flaky: {test}" for test in command.flaky)


def _ran(command: ProofCommand) -> str:
    ended = f"exit {command.exit_code}, {command.executed} tests"
    return f"ran `{' '.join(command.command)}` by {command.adapter}: {ended}"


def _outcome(outcome: TestOutcome.ValueType) -> str:
    if outcome == TEST_OUTCOME_UNSPECIFIED:
        return "not there"
    return TestOutcome.Name(outcome).removeprefix("TEST_OUTCOME_").lower()
