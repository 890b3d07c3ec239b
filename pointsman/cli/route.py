"""`pointsman route …`: decide a message, measure the rules, print them, read the log."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from pointsman.cli import EXIT_USAGE
from pointsman.cli.messages import project_name
from pointsman.files import atomic_write

Answer = TypeVar("Answer")
AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]
Rules = Annotated[Path | None, typer.Option(help="A JSON file with rules of your own, added to the rule set.")]
Server = Annotated[str, typer.Option(help="Address of the control plane; default: the one that runs, or an own one.")]
Project = Annotated[str, typer.Option(help="The project.", callback=project_name)]
DEFAULT_COMMAND = "text"


class TextByDefault(TyperGroup):
    """What names no subcommand is the text of a message."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default subcommand in front where none is named."""
        named = next((argument for argument in args if not argument.startswith("-")), None)
        if args and "--help" not in args and (named is None or named not in self.commands):
            dashed = [argument for argument in args if argument.startswith("-") and " " in argument]
            others = [argument for argument in args if argument not in dashed]
            args = [DEFAULT_COMMAND, *others, *(["--", *dashed] if dashed else [])]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=TextByDefault,
    add_completion=False,
    no_args_is_help=True,
    help='Decide who should take a message: pointsman route "fix the tests in src/". In process; needs no server.',
)


@app.command(DEFAULT_COMMAND)
def text(
    message: Annotated[str, typer.Argument(help="The message; - is standard input.")],
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Decide one message and say why (the default: `pointsman route "<text>"`)."""
    from pointsman.services.router.domain.classify import classify

    content = sys.stdin.buffer.read().decode(errors="replace") if message == "-" else message
    found = classify(_book(rules), content)
    shown = explained(found)
    print(json.dumps(shown, ensure_ascii=False, indent=2) if as_json else "\n".join(_lines(shown)))


def explained(found: Any) -> dict[str, Any]:
    """A decision with its reasons, as JSON shows it."""
    from pointsman.services.router.domain.evaluation import told

    return {
        **told(found),
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


@app.command("eval")
def evaluate(
    file: Annotated[Path, typer.Argument(help="JSON lines: text and any of mode, confidence, fast_path, debate, …")],
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Measure the rules on labelled messages: accuracy, errors each way, agreement, and every wrong item."""
    from pointsman.services.router.domain import evaluation

    items = list(_items(file))
    if not items:
        raise _usage(f'{file}: there is no message to measure; a line is {{"text": …, "mode": …}}')
    result = evaluation.evaluate(_book(rules), items)
    if as_json:
        print(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
    else:
        print("\n".join(evaluation.summary(result)))


def _items(file: Path) -> Iterator[dict[str, Any]]:
    """The labelled messages of a file; a line that is none is named."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _usage(f"{file}: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise _usage(f"{file}:{number}: {error}") from None
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            raise _usage(f"{file}:{number}: an object with a text is needed")
        yield item


@app.command()
def prompt(
    mode: Annotated[str, typer.Option(help="ANSWER or ACTION: the prompt of that mode instead of the rules.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print the rules as the soft router's prompt, or the prompt of one mode."""
    from pointsman.services.router.domain.manual import mode_prompt, soft_router_prompt
    from pointsman.services.router.domain.values import Mode

    if mode and mode.upper() not in Mode.__members__:
        raise typer.BadParameter(f"mode must be one of {', '.join(Mode)}")
    shown = mode_prompt(Mode[mode.upper()]) if mode else soft_router_prompt(_book(None).document)
    print(json.dumps({"prompt": shown}, ensure_ascii=False) + "\n" if as_json else shown, end="")


@app.command()
def log(
    day: Annotated[str, typer.Option(help="YYYY-MM-DD, in UTC; default: today.")] = "",
    write: Annotated[Path | None, typer.Option(help="Write memory/YYYY-MM-DD.md below this directory.")] = None,
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Print one day's decisions as markdown, from the control plane."""
    from pointsman.api.router.v1 import log_pb2
    from pointsman.services.chassis.clock import SystemClock

    wanted = day or f"{SystemClock().now():%Y-%m-%d}"

    async def ask(stub: Any) -> str:
        answers = stub.ExportLog(log_pb2.ExportLogRequest(day=wanted), metadata=_metadata(project))
        return "".join([part.markdown async for part in answers])

    markdown = _call(server, ask)
    if write is None:
        print(
            json.dumps({"day": wanted, "markdown": markdown}, ensure_ascii=False) + "\n" if as_json else markdown,
            end="",
        )
        return
    file = write / "memory" / f"{wanted}.md"
    try:
        atomic_write(file, markdown)
    except OSError as error:
        raise _usage(f"--write: cannot write {file}: {error.strerror}; name a directory that you can write") from None
    print(json.dumps({"day": wanted, "file": str(file)}) if as_json else file)


@app.command()
def stats(
    days: Annotated[int, typer.Option(min=1, max=3650, help="How many days back, until now.")] = 30,
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Print the rates of each mode, the confidence distribution and the override rate, from the control plane."""
    from datetime import timedelta

    from pointsman.api.router.v1 import log_pb2
    from pointsman.cli.messages import as_dict
    from pointsman.services.chassis.clock import SystemClock

    request = log_pb2.GetStatsRequest()
    request.window.start.FromDatetime(SystemClock().now() - timedelta(days=days))
    answer = _call(server, lambda stub: stub.GetStats(request, metadata=_metadata(project)))
    shown = as_dict(answer, whole=True)
    print(json.dumps(shown, indent=2) if as_json else "\n".join(f"{name:<15} {value}" for name, value in shown.items()))


def _metadata(project: str) -> Sequence[tuple[str, str]]:
    return (("pointsman-project", project),)


def _call(server: str, ask: Callable[[Any], Awaitable[Answer]]) -> Answer:
    """Ask the control plane one thing; what it refuses ends the command."""
    import grpc

    from pointsman.api.router.v1 import router_pb2_grpc
    from pointsman.cli.plane import control_plane
    from pointsman.services.chassis.errors import refusal_from

    async def run() -> Answer:
        async with control_plane(server) as plane:
            try:
                return await ask(router_pb2_grpc.RouterServiceStub(plane.channels["router"]))
            except grpc.aio.AioRpcError as error:
                raise refusal_from(error) from None

    return asyncio.run(run())


def _book(rules: Path | None) -> Any:
    """The rule set, with the rules of a file where one is named."""
    from pointsman.services.router.domain.document import RuleProblem
    from pointsman.services.router.rules import RuleFileRefused, load_own_rules, rule_book_with, standard_rule_book

    if rules is None:
        return standard_rule_book()
    try:
        return rule_book_with(load_own_rules(rules))
    except RuleFileRefused as refused:
        raise _usage(str(refused)) from None
    except RuleProblem as problem:
        raise _usage(f"{rules}: {problem}") from None


def _usage(message: str) -> typer.Exit:
    print(f"pointsman: {message}", file=sys.stderr)
    return typer.Exit(EXIT_USAGE)
