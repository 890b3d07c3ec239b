"""`pointsman route outcome` and `pointsman route debate`: what came of a decision, and how a debate about it ends."""

from typing import Annotated, Any

import typer

from pointsman.cli.commands.route.options import (
    AsJson,
    DecisionId,
    Project,
    Server,
    ask,
    choice,
    print_json,
    usage,
    word,
)
from pointsman.cli.render.json_output import as_dict


def outcome(  # noqa: PLR0913 - one parameter per option
    *,
    decision_id: DecisionId,
    result: Annotated[
        str,
        typer.Argument(
            metavar="OUTCOME", help="success, failure, user-rejected, clarification-requested or start-fresh."
        ),
    ],
    error_code: Annotated[str, typer.Option(help="With failure: the error's code, for example TypeError.")] = "",
    error_text: Annotated[
        str, typer.Option(help="With failure: the error's text; only its fingerprint is stored.")
    ] = "",
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Report how the task of a decision went; prints what has to happen now: nothing, a debate, or a person."""
    from pointsman.api.router.v1 import outcome_pb2 as pb
    from pointsman.client.calls import new_request_id

    request = pb.ReportOutcomeRequest(
        request_id=new_request_id(),
        decision_id=decision_id,
        outcome=choice(pb.Outcome, result, "OUTCOME"),
        error_code=error_code,
        error_text=error_text,
    )
    if (error_code or error_text) and request.outcome != pb.OUTCOME_FAILURE:
        raise usage("--error-code and --error-text go with the outcome failure")
    answer = ask(server, project, lambda calls: calls.call("ReportOutcome", request))
    if as_json:
        print_json(as_dict(answer, whole=True))
        return
    cause = f" ({word(pb.ReactionCause, answer.cause).replace('_', ' ')})" if answer.cause else ""
    print(f"{word(pb.Reaction, answer.reaction).upper()}{cause}")
    print(f"  failures in a row {answer.consecutive_failures}, rejections {answer.rejections}, task {answer.task_id}")


def debate(  # noqa: PLR0913 - one parameter per option
    *,
    decision_id: DecisionId,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="planning or failure.")],
    confidence: Annotated[float, typer.Option(min=0, max=1, help="How sure the advocate is, 0 to 1.")],
    proposal: Annotated[str, typer.Option(help="What the advocate proposes.")] = "",
    difference: Annotated[str, typer.Option(help="failure: what differs from the last try.")] = "",
    objection: Annotated[str, typer.Option(help="What the critic objects to.")] = "",
    severity: Annotated[str, typer.Option(help="How bad that is: low, medium or high; needed with --objection.")] = "",
    counter: Annotated[str, typer.Option(help="What the critic would do instead.")] = "",
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Weigh a debate about a decision: PROCEED, MODIFY or ESCALATE before the work, RETRY, PIVOT or ESCALATE after it."""
    from pointsman.api.router.v1 import outcome_pb2 as pb
    from pointsman.client.calls import new_request_id

    if objection and not severity:
        raise usage("--objection needs --severity: low, medium or high")
    request = pb.ResolveDebateRequest(
        request_id=new_request_id(),
        decision_id=decision_id,
        kind=choice(pb.DebateKind, kind, "KIND"),
        advocate=pb.Advocate(proposal=proposal, confidence=confidence, difference=difference),
        critic=pb.Critic(
            objection=objection,
            severity=choice(pb.Severity, severity, "--severity") if severity else pb.SEVERITY_UNSPECIFIED,
            counter_proposal=counter,
        ),
    )
    answer = ask(server, project, lambda calls: calls.call("ResolveDebate", request))
    _print_verdict(answer, as_json)


def _print_verdict(answer: Any, as_json: bool) -> None:
    from pointsman.api.router.v1 import decision_pb2, outcome_pb2

    if as_json:
        print_json(as_dict(answer, whole=True))
        return
    verdict = word(outcome_pb2.Verdict, answer.verdict).upper()
    print(f"{verdict} (rule {answer.rule}, stakes {word(decision_pb2.Stakes, answer.stakes)})")
