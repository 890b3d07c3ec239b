"""`pointsman route "<text>"`: decide one message, record the decision where there is a store, say why."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman.cli.commands.route.options import AsJson, Project, Rules, Server, book_with, print_json, word
from pointsman.cli.session.router_client import NotRecorded, decide_and_record, require_recording

MAX_LETTERS = 65_536
"""How long a message may be that is recorded."""
DryRun = Annotated[bool, typer.Option("--dry-run", help="Decide without recording the decision.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Say why nothing was recorded, where nothing was.")]


def text(  # noqa: PLR0913 - one parameter per option
    *,
    message: Annotated[str, typer.Argument(help="The message; - is standard input.")],
    rules: Rules = None,
    session: Annotated[str, typer.Option(help="The session it belongs to: a task is debated once in a session.")] = "",
    dry_run: DryRun = False,
    verbose: Verbose = False,
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Decide one message, record it and say why (the default: `pointsman route "<text>"`).

    The running control plane records it, else the router's store in the data directory; without either nothing is recorded.
    """
    content = sys.stdin.buffer.read().decode(errors="replace") if message == "-" else message
    try:
        _refuse_message(content, rules, server, dry_run=dry_run)
        shown = _recorded(content, session, server, project)
    except NotRecorded as reason:
        shown = {**_in_process(content, rules), "recorded": False, "not_recorded": str(reason)}
        if verbose or reason.is_fault:
            print(f"pointsman: not recorded: {reason}", file=sys.stderr)
    if as_json:
        print_json(shown)
    else:
        print("\n".join(_lines(shown)))


def _refuse_message(content: str, rules: Path | None, server: str, *, dry_run: bool) -> None:
    """Raises NotRecorded if the decision about a message cannot be recorded."""
    require_recording(server, dry_run=dry_run)
    if rules is not None:
        raise NotRecorded("--rules only tries rules; `pointsman route policy --rules` sets them")
    if len(content) > MAX_LETTERS or "\0" in content or not _is_unicode(content):
        raise NotRecorded(f"a message of at most {MAX_LETTERS} Unicode letters without NUL is needed")


def _is_unicode(content: str) -> bool:
    """Whether the text can be sent: arguments that are not UTF-8 cannot."""
    try:
        content.encode()
    except UnicodeEncodeError:
        return False
    return True


def _recorded(content: str, session: str, server: str, project: str) -> dict[str, Any]:
    """The decision that the router stored."""
    from pointsman.api.router.v1 import decision_pb2 as pb
    from pointsman.client.calls import new_request_id

    request = pb.ClassifyRequest(request_id=new_request_id(), message=pb.Message(text=content), session_id=session)
    return _shown(decide_and_record(server, project, "Classify", request).decision)


def _shown(made: Any) -> dict[str, Any]:
    from pointsman.api.router.v1 import decision_pb2 as pb

    bypass = word(pb.DebateBypass, made.debate_bypass)
    return {
        "mode": word(pb.Mode, made.mode).upper(),
        "confidence": word(pb.Confidence, made.confidence).upper(),
        "fast_path": made.fast_path,
        "debate": word(pb.Debate, made.debate),
        "stakes": word(pb.Stakes, made.stakes),
        "debate_bypass": None if bypass == "none" else bypass,
        "route": word(pb.RouteTarget, made.route),
        "triggers": [
            {
                "kind": word(pb.TriggerKind, trigger.kind),
                "name": trigger.name,
                "rule": trigger.rule,
                "start": trigger.start,
                "end": trigger.end,
            }
            for trigger in made.triggers
        ],
        "debate_reasons": [
            {
                "trigger": word(pb.PlanningTrigger, reason.trigger),
                "rule": reason.rule,
                "start": reason.start,
                "end": reason.end,
            }
            for reason in made.debate_reasons
        ],
        "rules": list(made.rules),
        "rule_set_version": made.rule_set_version,
        "recorded": True,
        "decision_id": made.decision_id,
    }


def _in_process(content: str, rules: Path | None) -> dict[str, Any]:
    """A decision made in this process and not recorded, with the same fields."""
    from pointsman.services.router.domain.classification.classify import classify
    from pointsman.services.router.domain.evaluation import as_labels

    found = classify(book_with(rules), content)
    return {
        **as_labels(found),
        "route": str(found.route),
        "triggers": [trigger._asdict() for trigger in found.triggers],
        "debate_reasons": [reason._asdict() for reason in found.reasons],
        "rules": list(found.rules),
        "rule_set_version": found.rule_set_version,
    }


def _lines(shown: dict[str, Any]) -> Iterator[str]:
    fast = " (fast path)" if shown["fast_path"] else ""
    yield f"{shown['mode']} {shown['confidence']} → {shown['route']}{fast}"
    for trigger in shown["triggers"]:
        yield f"  {trigger['kind']:<14} {trigger['name']!r} at {trigger['start']}–{trigger['end']}  {trigger['rule']}"
    if shown["mode"] == "ACTION":
        bypass = f", bypassed: {shown['debate_bypass']}" if shown["debate_bypass"] else ""
        reasons = ", ".join(reason["trigger"] for reason in shown["debate_reasons"])
        yield f"  debate {shown['debate']}, stakes {shown['stakes']}{f' ({reasons})' if reasons else ''}{bypass}"
    yield f"  decided by {shown['rules'][0]}, rule set {shown['rule_set_version']}"
    if shown["recorded"]:
        yield f"  recorded as {shown['decision_id']}"
