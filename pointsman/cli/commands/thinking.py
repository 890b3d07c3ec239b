"""`pointsman thinking`: which step of the thinking workflow comes next. Needs no server; recorded where there is a store."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.usage import ProjectOption
from pointsman.cli.session.router_client import NotRecorded, decide_and_record, require_recording

OPTIONS = ("--local-command", "--web-command")
app = typer.Typer(add_completion=False)


@app.command()
def thinking(  # noqa: PLR0913 - the options of the command
    *,
    step: Annotated[str, typer.Argument(help="`full`: both steps in order, with what each has to produce.")] = "",
    directory: Annotated[
        Path, typer.Option("--dir", help="The project's root.", exists=True, file_okay=False)
    ] = Path(),
    latch: Annotated[Path | None, typer.Option(help="The latch; default: $HOME/.claude/latch.lock.")] = None,
    local_command: Annotated[str, typer.Option(help="full: the command that does the first step.")] = "",
    web_command: Annotated[str, typer.Option(help="full: the command that does the second step.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide without recording the decision.")] = False,
    project: ProjectOption = "local",
    server: Annotated[str, typer.Option(help="Address of the control plane; default: the one that runs.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The envelope as JSON instead of YAML.")] = False,
) -> None:
    """Decide from the artifacts below .claude/state/thinking; exit 0 for a route, 1 for a STOP with an error.

    The running control plane records the decision, else the router's store in the data directory.
    """
    if step not in ("", "full"):
        raise typer.BadParameter("only `full` can be named", param_hint="step")
    if step != "full" and (local_command or web_command):
        raise typer.BadParameter(
            "only `pointsman thinking full` runs commands", param_hint="--local-command, --web-command"
        )
    if step == "full":
        _full(directory, (local_command, web_command), as_json)
        return
    from pointsman.cli.session.thinking_snapshot import default_latch, take_snapshot
    from pointsman.services.router.domain.thinking import Status

    snapshot = take_snapshot(directory, latch or default_latch())
    envelope, why_not = _decided(snapshot, server, project, dry_run=dry_run)
    if why_not is not None and why_not.is_fault:
        print(f"pointsman: not recorded: {why_not}", file=sys.stderr)
    shown = shown_envelope(envelope)
    _print({**shown, "recorded": why_not is None} if as_json else shown, as_json)
    if envelope.status is Status.ERROR:
        raise typer.Exit(EXIT_FAILED)


def _decided(snapshot: Any, server: str, project: str, *, dry_run: bool) -> tuple[Any, NotRecorded | None]:
    """The envelope, from the router or made in this process, and why it is not recorded, if it is not."""
    from pointsman.services.chassis.core.clock import SystemClock
    from pointsman.services.router.domain.thinking import route_thinking

    try:
        require_recording(server, dry_run=dry_run)
        from pointsman.cli.session.thinking_request import envelope_of, thinking_request

        answer = decide_and_record(server, project, "RouteThinking", thinking_request(snapshot))
        return envelope_of(answer.envelope), None
    except NotRecorded as why_not:
        return route_thinking(snapshot, SystemClock().now()), why_not


def shown_envelope(envelope: Any) -> dict[str, Any]:
    """The envelope in the format of the thinking commands."""
    return {
        "command": envelope.command,
        "timestamp": f"{envelope.timestamp:%Y-%m-%dT%H:%M:%SZ}",
        "status": str(envelope.status),
        "error_code": str(envelope.error_code) if envelope.error_code else None,
        "warn": envelope.warn or None,
        "missing_inputs": list(envelope.missing_inputs),
        "artifacts_read": list(envelope.artifacts_read),
        "artifacts_written": list(envelope.artifacts_written),
        "routed_to": str(envelope.routed_to) if envelope.routed_to else None,
        "reason": envelope.reason,
        "next": envelope.next,
    }


def _full(directory: Path, commands: tuple[str, str], as_json: bool) -> None:
    """Both steps: printed, or run by the given commands, each of which has to write its artifacts."""
    from pointsman.cli.session.thinking_snapshot import STATE
    from pointsman.services.router.domain.thinking import FULL_STEPS

    if not any(commands):
        steps = [{"step": name, "produces": list(artifacts)} for name, artifacts in FULL_STEPS]
        if as_json:
            print(json.dumps(steps, indent=2))
        else:
            print("\n".join(f"{n}) /{s['step']} → {', '.join(s['produces'])}" for n, s in enumerate(steps, 1)))
        return
    words = [_split(command, option) for command, option in zip(commands, OPTIONS, strict=True)]
    for (name, artifacts), command in zip(FULL_STEPS, words, strict=True):
        if not command:
            continue
        left = _run(command, directory, as_json)
        missing = [artifact for artifact in artifacts if not (directory / STATE / artifact).is_file()]
        if left or missing:
            why = left or f"missing: {', '.join(missing)}"
            print(f"pointsman: step {name} stopped ({why})", file=sys.stderr)
            raise typer.Exit(EXIT_FAILED)
        print(json.dumps({"step": name, "produced": list(artifacts)}) if as_json else f"{name}: {', '.join(artifacts)}")


def _split(command: str, option: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise typer.BadParameter(f"{error}: check its quotes", param_hint=option) from None


def _run(command: list[str], directory: Path, as_json: bool) -> str:
    """Runs a step's command and returns its failure, if any; with --json its output goes to standard error."""
    try:
        run = subprocess.run(command, cwd=directory, check=False, stdout=sys.stderr if as_json else None)  # noqa: S603 - the user's own
    except OSError as error:
        return f"cannot start '{command[0]}': {str(error.strerror).lower()}"
    except ValueError as error:
        return f"cannot start '{command[0]}': {error}"
    return f"exit code {run.returncode}" if run.returncode else ""


def _print(shown: dict[str, Any], as_json: bool) -> None:
    import yaml

    print(
        json.dumps(shown, ensure_ascii=False, indent=2) if as_json else yaml.safe_dump(shown, sort_keys=False),
        end="\n" if as_json else "",
    )
