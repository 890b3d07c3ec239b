"""A proof in words."""

from collections.abc import Iterator

from pointsman.proof.prover import Proof
from pointsman.proof.summary import runs_of, unexplained_output
from pointsman.proof.verdict import Decision, Grade

SHOWN_FAILURES = 3
GRADES = {
    Grade.PROVEN: "PROVEN",
    Grade.UNBROKEN: "UNBROKEN",
    Grade.ON_WORD: "ON WORD",
    Grade.NONE: "no grade",
}


def proof_lines(proof: Proof) -> Iterator[str]:
    """The verdict, why, what was changed among protected files, and what each command did."""
    verdict = proof.verdict
    if verdict.decision is Decision.REFUSED:
        yield "REFUSED"
    elif verdict.decision is Decision.ASKED:
        yield f"ASKED: {GRADES[verdict.grade]}, if somebody who is not the author says yes"
    else:
        yield GRADES[verdict.grade]
    yield from (f"  {reason}" for reason in verdict.reasons)
    yield from (f"  question: {question}" for question in verdict.questions)
    yield from (f"  open risk: {risk}" for risk in verdict.risks)
    for change in proof.plan.protected:
        keys = f" ({', '.join(change.keys)})" if change.keys else ""
        yield f"  protected, {change.change}: {change.path}{keys}: {change.why}"
    for command in proof.commands:
        yield f"`{' '.join(command.base.command)}` by {command.restored.report.adapter}, isolation {proof.level}"
        for run in runs_of(command):
            counted = f"{len(run.report.executed)} tests, {len(run.report.red)} red"
            yield f"  {run.purpose.replace('_', ' ')}: {counted}, exit code {run.result.exit_code}, {run.seconds:.1f} s"
            yield from (f"    {line}" for line in unexplained_output(run).splitlines())
        worse = (*command.in_restored.regressions, *command.in_delivered.added_red)
        for test in [test for test in command.delivered.report.red if test.id in worse][:SHOWN_FAILURES]:
            yield f"  {test.id}:"
            yield from (f"    {line}" for line in test.message.splitlines())
