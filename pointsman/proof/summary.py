"""A proof as plain values and as JUnit XML, for scripts and continuous integration."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from pointsman.proof.execution import ProofRun, Purpose
from pointsman.proof.prover import Proof
from pointsman.proof.results import NOT_RUN, RED, TestResult
from pointsman.proof.verdict import CommandFacts


def to_values(proof: Proof) -> dict[str, Any]:
    """The whole proof; held-out checks are counted, never named."""
    verdict = proof.verdict
    return {
        "decision": str(verdict.decision),
        "grade": str(verdict.grade),
        "reasons": list(verdict.reasons),
        "questions": list(verdict.questions),
        "risks": list(verdict.risks),
        "base_tree": proof.plan.base.tree,
        "delivered_tree": proof.plan.delivered.tree,
        "isolation": str(proof.level),
        "protected_changes": [
            {"path": one.path, "change": str(one.change), "kind": str(one.kind), "why": one.why, "keys": list(one.keys)}
            for one in proof.plan.protected
        ],
        "changed_sources": list(proof.plan.sources),
        "changed_dependencies": list(proof.plan.dependencies),
        "signals": [
            {"name": one.name, "path": one.path, "line": one.line, "why": one.why, "asks": one.asks}
            for one in proof.signals
        ],
        "commands": [_command(command) for command in proof.commands],
    }


def _command(facts: CommandFacts) -> dict[str, Any]:
    restored = facts.in_restored
    return {
        "command": list(facts.base.command),
        "adapter": facts.restored.report.adapter,
        "runs": [_run(run) for run in runs_of(facts)],
        "fixed": list(restored.fixed),
        "regressions": list(restored.regressions),
        "removed": list(facts.in_delivered.removed),
        "newly_not_run": list(facts.in_delivered.newly_not_run),
        "still_red": list(restored.still_red),
        "new": list(facts.in_delivered.added),
        "flaky": list(facts.flaky),
    }


def runs_of(facts: CommandFacts) -> tuple[ProofRun, ...]:
    """The runs of a command, each once."""
    delivered = () if facts.delivered is facts.restored else (facts.delivered,)
    others = [run for run in (facts.new_tests_on_base, facts.held_out) if run is not None]
    return (facts.base, facts.restored, *delivered, *others)


def _run(run: ProofRun) -> dict[str, Any]:
    report = run.report
    values: dict[str, Any] = {
        "purpose": str(run.purpose),
        "tree": run.tree,
        "exit_code": run.result.exit_code,
        "seconds": round(run.seconds, 3),
        "complete": report.complete,
        "executed": len(report.executed),
        "red": len(report.red),
    }
    if run.purpose is not Purpose.HELD_OUT:
        values["tests"] = {test.id: str(test.outcome) for test in report.tests.values()}
        values["messages"] = {test.id: test.message for test in report.red if test.message}
        values["output"] = unexplained_output(run)
    return values


def unexplained_output(run: ProofRun) -> str:
    """What a command printed, where no test explains how it ended; nothing of held-out checks."""
    if run.purpose is Purpose.HELD_OUT or (run.report.complete and (run.ended_well or run.report.red)):
        return ""
    return run.result.excerpt()


def to_junit(proof: Proof) -> bytes:
    """The verdict and the tests that judge, as JUnit XML."""
    root = ElementTree.Element("testsuites", name="pointsman proof")
    suite = ElementTree.SubElement(root, "testsuite", name=f"proof: {proof.verdict.grade}")
    verdict = ElementTree.SubElement(suite, "testcase", name="verdict", classname="pointsman.proof")
    if str(proof.verdict.decision) != "accepted":
        lines = [*proof.verdict.reasons, *proof.verdict.questions]
        ElementTree.SubElement(verdict, "failure", message=str(proof.verdict.decision)).text = "\n".join(lines)
    for facts in proof.commands:
        tests = ElementTree.SubElement(root, "testsuite", name=" ".join(facts.base.command))
        for test in facts.restored.report.tests.values():
            _case(tests, test, facts.base.report.tests)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _case(suite: ElementTree.Element, test: TestResult, base: Mapping[str, TestResult]) -> None:
    case = ElementTree.SubElement(suite, "testcase", name=test.id, time=f"{test.seconds:.3f}")
    before = base.get(test.id)
    if test.outcome in RED and before is not None and before.outcome in RED:
        ElementTree.SubElement(case, "skipped", message="it fails as it did on the base")
    elif test.outcome in RED:
        ElementTree.SubElement(case, "failure", message=str(test.outcome)).text = _printable(test.message)
    elif test.outcome in NOT_RUN:
        ElementTree.SubElement(case, "skipped", message=str(test.outcome))


def _printable(text: str) -> str:
    """Text without the signs that XML cannot hold."""
    return "".join(sign for sign in text if sign in "\n\t" or sign.isprintable())
