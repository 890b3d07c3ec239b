"""Commands about constraints: merge, verify on this machine, waive by name."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from google.protobuf.json_format import ParseDict, ParseError

from pointsman._shared.strict_json import JsonError, decode_object
from pointsman.api.workflow.v1 import constraints_pb2, reading_pb2
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.input_files import read_text
from pointsman.cli.session.constraint_checks import CheckResult, check, command_of
from pointsman.cli.session.workflow_client import AsJson, File, Server, WorkflowId, ask, progress_line, say
from pointsman.services.chassis.core.ids import new_nonce
from pointsman.services.workflow.formats.document_reader import Reader
from pointsman.services.workflow.formats.workflow_state_reader import read_constraints
from pointsman.services.workflow.wire.encode import constraint_set

SET_FIELDS = ("hard", "soft", "openQuestions", "openQuestionSources", "successCriteria")
CONTRACT_FIELDS = {"open_questions", "success_criteria"}
_SETTLED = (constraints_pb2.VERIFICATION_STATUS_PASSED, constraints_pb2.VERIFICATION_STATUS_WAIVED)


def merge(workflow_id: WorkflowId, file: File, server: Server = "", as_json: AsJson = False) -> None:
    """Merge constraints from a JSON file: one set {"hard": [{"id": "C1", "description": "…", "verifyCmd": "…"}], "soft": […]} or {"sets": […]}."""
    request = constraints_pb2.MergeConstraintsRequest(request_id=new_nonce(), workflow_id=workflow_id)
    try:
        document = decode_object(read_text(file))
        for number, one in enumerate(document.get("sets", [document.get("constraints", document)])):
            request.sets.append(_constraints(one, f"sets[{number}]"))
    except (JsonError, ParseError) as error:
        raise typer.BadParameter(f"'{file}': {error}") from None
    answer = ask(server, lambda stub: stub.MergeConstraints(request))
    say(answer, as_json, "\n".join([_merged_line(answer.constraints), *_left_out(answer.dropped)]))


def _merged_line(merged: constraints_pb2.ConstraintSet) -> str:
    constraints = f"{len(merged.hard)} hard, {len(merged.soft)} soft constraints"
    return (
        f"{constraints}, {len(merged.open_questions)} open questions, {len(merged.success_criteria)} success criteria"
    )


def _left_out(dropped: constraints_pb2.ConstraintSet) -> Iterator[str]:
    """One line for each constraint or criterion that was dropped."""
    for kind, constraints in (("hard", dropped.hard), ("soft", dropped.soft)):
        for one in constraints:
            yield f"  left out: {kind} constraint {one.constraint_id}  {one.description}"
    yield from (f"  left out: open question  {one.text}" for one in dropped.open_questions)
    yield from (f"  left out: success criterion  {one}" for one in dropped.success_criteria)


def _constraints(content: Any, place: str) -> constraints_pb2.ConstraintSet:
    """One constraint set, with the field names of workflow-state.json or of the contract."""
    if not isinstance(content, dict):
        raise typer.BadParameter(f"{place} must be an object with hard and soft constraints")
    if _has_contract_names(content):
        return ParseDict(content, constraints_pb2.ConstraintSet())
    if unknown := sorted(content.keys() - SET_FIELDS):
        raise typer.BadParameter(
            f"{place}: unknown field {', '.join(unknown)}; a set of constraints has {', '.join(SET_FIELDS)}"
        )
    reader = Reader(place)
    found = read_constraints(reader, content)
    if reader.problems:
        raise typer.BadParameter("; ".join(f"{problem.field}: {problem.description}" for problem in reader.problems))
    return constraint_set(found)


def _has_contract_names(content: dict[str, Any]) -> bool:
    listed = [one for kind in ("hard", "soft") for one in content.get(kind) or () if isinstance(one, dict)]
    return bool(content.keys() & CONTRACT_FIELDS) or any("constraint_id" in one for one in listed)


def waive(
    workflow_id: WorkflowId,
    constraint_id: Annotated[str, typer.Argument(help="The hard constraint, by name.")],
    reason: Annotated[str, typer.Option(help="Why; needed.")],
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Take one hard constraint out of the way; recorded as a high risk."""
    request = constraints_pb2.WaiveConstraintRequest(
        request_id=new_nonce(), workflow_id=workflow_id, constraint_id=constraint_id, reason=reason
    )
    answer = ask(server, lambda stub: stub.WaiveConstraint(request))
    say(answer, as_json, progress_line(answer.progress))


def verify(  # noqa: PLR0913, PLR0917 - the options of the command
    workflow_id: WorkflowId,
    again: Annotated[bool, typer.Option("--again", help="Also those that passed or were waived.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run the commands without asking.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that one command may take.")] = 600.0,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Run the constraints' commands here and record the results; exit 1 while a hard constraint is not met."""
    found = ask(server, lambda stub: stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=workflow_id)))
    held = found.workflow.constraints
    chosen = [one for one in (*held.hard, *held.soft) if again or one.verification not in _SETTLED]
    if not yes and sys.stdin.isatty():
        _confirm(chosen)
    unmet = [one.constraint_id for one in held.hard if one.verification not in _SETTLED]
    answer = constraints_pb2.RecordVerificationResponse(progress=found.workflow.progress, unmet_constraint_ids=unmet)
    for number, constraint in enumerate(chosen, 1):
        _show(
            f"[{number}/{len(chosen)}] {constraint.constraint_id}  {command_of(constraint.verify_cmd) or 'no command'}"
        )
        request = constraints_pb2.RecordVerificationRequest(request_id=new_nonce(), workflow_id=workflow_id)
        _take_in(request, constraint, check(constraint.verify_cmd, timeout))
        if request.verifications:
            answer = _record(server, request)
    unmet = list(answer.unmet_constraint_ids)
    say(answer, as_json, progress_line(answer.progress))
    if unmet:
        _show(f"not met: {', '.join(unmet)}")
        raise typer.Exit(EXIT_FAILED)


def _record(
    server: str, request: constraints_pb2.RecordVerificationRequest
) -> constraints_pb2.RecordVerificationResponse:
    """Records a result at once, so that an interrupted command keeps the earlier ones."""
    return ask(server, lambda stub: stub.RecordVerification(request))


def _confirm(chosen: Sequence[constraints_pb2.Constraint]) -> None:
    commands = [command_of(one.verify_cmd) for one in chosen if one.verify_cmd]
    if commands:
        _show("These commands will run here:\n" + "\n".join(f"  {command}" for command in commands))
        typer.confirm("Go on?", abort=True, err=True)


def _take_in(
    request: constraints_pb2.RecordVerificationRequest, constraint: constraints_pb2.Constraint, checked: CheckResult
) -> None:
    """Adds a result to the request; a command that could not run leaves the constraint unverified."""
    if checked.passed is None:
        _show(f"      unverified: {checked.details}")
        return
    _show(f"      {'passed' if checked.passed else 'failed'} in {checked.seconds:.1f} s")
    result = request.verifications.add(
        constraint_id=constraint.constraint_id, passed=checked.passed, details=checked.details[:4000]
    )
    result.checked_at.GetCurrentTime()


def _show(line: str) -> None:
    """Prints progress to standard error, so that a pipe gets only the answer."""
    print(line, file=sys.stderr, flush=True)
