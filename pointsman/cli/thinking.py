"""`pointsman thinking`: which step of the thinking workflow comes next. In process; needs no server."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman.cli import EXIT_FAILED

OPTIONS = ("--local-command", "--web-command")
app = typer.Typer(add_completion=False)


@app.command()
def thinking(  # noqa: PLR0913, PLR0917 - the options of the command
    step: Annotated[str, typer.Argument(help="`full`: both steps in order, with what each has to produce.")] = "",
    directory: Annotated[
        Path, typer.Option("--dir", help="The project's root.", exists=True, file_okay=False)
    ] = Path(),
    latch: Annotated[Path | None, typer.Option(help="The latch; default: $HOME/.claude/latch.lock.")] = None,
    local_command: Annotated[str, typer.Option(help="full: the command that does the first step.")] = "",
    web_command: Annotated[str, typer.Option(help="full: the command that does the second step.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The envelope as JSON instead of YAML.")] = False,
) -> None:
    """Decide from the artifacts below .claude/state/thinking; exit 0 for a route, 1 for a STOP with an error."""
    if step not in ("", "full"):
        raise typer.BadParameter("only `full` can be named", param_hint="step")
    if step != "full" and (local_command or web_command):
        raise typer.BadParameter(
            "only `pointsman thinking full` runs commands", param_hint="--local-command, --web-command"
        )
    if step == "full":
        _full(directory, (local_command, web_command), as_json)
    else:
        _route(directory, latch, as_json)


def _route(directory: Path, latch: Path | None, as_json: bool) -> None:
    from pointsman.cli.thinking_files import default_latch, take_snapshot
    from pointsman.services.chassis.clock import SystemClock
    from pointsman.services.router.domain.thinking import Status, route_thinking

    snapshot = take_snapshot(directory, latch or default_latch())
    envelope = route_thinking(snapshot, SystemClock().now())
    _print(shown_envelope(envelope), as_json)
    if envelope.status is Status.ERROR:
        raise typer.Exit(EXIT_FAILED)


def shown_envelope(envelope: Any) -> dict[str, Any]:
    """The envelope as the thinking commands write it."""
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
    """Both steps: printed, or run by the commands that are given, each of which has to leave its artifacts."""
    from pointsman.cli.thinking_files import STATE
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
    """Run a step's command; what is wrong with how it went, if anything. Beside JSON its output goes to the errors."""
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
