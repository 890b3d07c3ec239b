"""`pointsman pipeline …`: drive a task through its stages, look at it, read what an agent said."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

import grpc
import typer
from google.protobuf.json_format import MessageToDict

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.cli import EXIT_FAILED, EXIT_WAITS_FOR_PERSON
from pointsman.cli.pipeline_view import draw, live_line
from pointsman.cli.plane import control_plane
from pointsman.services.chassis.errors import refusal_from
from pointsman.services.chassis.ids import new_nonce
from pointsman.services.pipeline.domain.marker import parse_route
from pointsman.services.pipeline.domain.route import repair
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph
from pointsman.services.pipeline.domain.words import StageKind

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Drive a task through its stages.")

MAX_TRANSCRIPT_BYTES = 1_048_576
Answer = TypeVar("Answer")
Stub = pipeline_pb2_grpc.PipelineServiceStub
AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]
Server = Annotated[str, typer.Option(help="Address of the control plane; default: the one that runs, or an own one.")]
PipelineId = Annotated[str, typer.Argument(help="The pipeline's id.")]
StageId = Annotated[str, typer.Argument(help="The stage's id, such as DEV.")]
Reason = Annotated[str, typer.Option(help="Why, for the journal.")]
Agent = Annotated[str, typer.Option(help="The agent's id.")]
File = Annotated[str, typer.Argument(help="A file; - is standard input.")]


def _call(server: str, ask: Callable[[Stub], Awaitable[Answer]]) -> Answer:
    """Ask the control plane one thing; what it refuses ends the command."""

    async def run() -> Answer:
        async with control_plane(server) as plane:
            try:
                return await ask(Stub(plane.channels["pipeline"]))
            except grpc.aio.AioRpcError as error:
                raise refusal_from(error) from None

    return asyncio.run(run())


def _print(message: Any, as_json: bool, line: str) -> None:
    print(json.dumps(_dict(message), ensure_ascii=False, indent=2) if as_json else line)


def _dict(message: Any) -> dict[str, Any]:
    content: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return content


def _read(name: str) -> str:
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return data.decode(errors="replace")


def _transcript(name: str) -> str:
    """The end of a transcript, from the beginning of a line, as far as a request takes it: no NUL, a mebibyte."""
    data = _read(name).replace("\0", "\ufffd").encode()
    if len(data) > MAX_TRANSCRIPT_BYTES:
        data = data[-MAX_TRANSCRIPT_BYTES:]
        data = data[data.find(b"\n") + 1 :]
    return data.decode(errors="ignore")


@app.command()
def templates(as_json: AsJson = False) -> None:
    """List the templates and their stages; needs no control plane."""
    shown = {
        known.id: {"description": known.description, "stages": [node.stage for node in template_graph(known.id).nodes]}
        for known in TEMPLATES.values()
    }
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    for template_id, content in shown.items():
        print(f"{template_id:<12} {' '.join(content['stages']) or '-':<50} {content['description']}")


@app.command()
def parse(
    file: File = "-",
    kind: Annotated[str, typer.Option(help="The stage's kind, which decides what a repaired verdict means.")] = "DEV",
    nonce: Annotated[str, typer.Option(help="Only a marker with this nonce counts.")] = "",
) -> None:
    """Print the effective route of a transcript as JSON; exit 1 when there is none. Needs no control plane."""
    if kind not in StageKind.__members__:
        raise typer.BadParameter(f"kind must be one of {', '.join(StageKind)}")
    reported = parse_route(_read(file), nonce or None)
    if reported is None:
        print("null")
        raise typer.Exit(EXIT_FAILED)
    route = repair(reported, StageKind(kind))
    shown = {
        "verdict": route.verdict,
        "route": route.route,
        "severity": route.severity,
        "context_file": route.context_file or None,
        "hint": route.hint or None,
        "barrier_group": route.barrier_group or None,
        "source": route.source,
        "warnings": [{"code": warning.code, "text": warning.text} for warning in route.warnings],
    }
    print(json.dumps(shown, ensure_ascii=False, indent=2))


@app.command()
def classify(
    text: Annotated[str, typer.Argument(help="The task.")], server: Server = "", as_json: AsJson = False
) -> None:
    """Say which template a task needs, and by which rule."""
    answer = _call(server, lambda stub: stub.Classify(pb.ClassifyRequest(text=text)))
    _print(answer, as_json, f"{answer.template} (rule: {answer.rule})")


@app.command()
def start(  # noqa: PLR0913, PLR0917 - the options of the command
    template: Annotated[str, typer.Argument(help="A template's id, or a JSON file with an own DAG.")],
    pipeline_id: Annotated[str, typer.Option("--id", help="An id of your own.")] = "",
    agent: Agent = "",
    strict: Annotated[bool, typer.Option(help="Quality stages never go on unproven.")] = False,
    barrier_timeout: Annotated[float, typer.Option(help="Seconds that a barrier waits.")] = 300.0,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Start a pipeline; with --agent its first stages are delegated at once."""
    request = pb.StartPipelineRequest(
        request_id=new_nonce(),
        pipeline_id=pipeline_id,
        policy=sp.POLICY_STRICT if strict else sp.POLICY_SEED,
    )
    request.barrier_timeout.FromTimedelta(timedelta(seconds=barrier_timeout))
    if template.endswith(".json"):
        request.dag.CopyFrom(_dag(template))
    else:
        request.template = template
    if agent:
        request.auto_delegate.agent_id = agent
    answer = _call(server, lambda stub: stub.StartPipeline(request))
    _print(answer, as_json, "\n".join([answer.pipeline_id, *map(live_line, answer.next)]))


def _dag(name: str) -> sp.Dag:
    from google.protobuf.json_format import Parse, ParseError

    try:
        return Parse(_read(name), sp.Dag())
    except ParseError as error:
        raise typer.BadParameter(f"{name} is no DAG: {error}") from None


@app.command()
def delegate(  # noqa: PLR0913, PLR0917 - the options of the command
    pipeline_id: PipelineId,
    stage: StageId,
    agent: Agent = "",
    replace: Annotated[bool, typer.Option(help="Take it away from the agent that has it.")] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Give a stage to an agent."""
    request = pb.DelegateStageRequest(
        request_id=new_nonce(), pipeline_id=pipeline_id, stage=stage, agent_id=agent, replace=replace
    )
    answer = _call(server, lambda stub: stub.DelegateStage(request))
    _print(answer, as_json, live_line(answer.delegation))


@app.command()
def complete(  # noqa: PLR0913, PLR0917 - the options of the command
    pipeline_id: PipelineId,
    delegation_id: Annotated[str, typer.Argument(help="The delegation that is done, such as DEV#1.")],
    verdict: Annotated[str, typer.Option(help="PASS or FAIL.")] = "",
    severity: Annotated[str, typer.Option(help="With FAIL: CRITICAL, HIGH, MEDIUM or LOW.")] = "",
    hint: Annotated[str, typer.Option(help="One line for whoever repairs it.")] = "",
    transcript: Annotated[str, typer.Option(help="File with the agent's output instead; - is standard input.")] = "",
    report: Annotated[str, typer.Option(help="File with the stage's report.")] = "",
    agent: Agent = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Say what a stage came to; the next stages are delegated to the same agent."""
    request = pb.CompleteStageRequest(
        request_id=new_nonce(), pipeline_id=pipeline_id, delegation_id=delegation_id, agent_id=agent
    )
    request.auto_delegate.agent_id = agent
    if report:
        request.report = _read(report)
    if transcript:
        request.transcript = _transcript(transcript)
    elif verdict:
        request.route.verdict = _enum(rt.Verdict, "VERDICT", verdict)
        request.route.severity = _enum(rt.Severity, "SEVERITY", severity or "UNSPECIFIED")
        request.route.hint = hint
    answer = _call(server, lambda stub: stub.CompleteStage(request))
    disposition = pb.Disposition.Name(answer.disposition).removeprefix("DISPOSITION_")
    warnings = [f"  warning: {warning.text}" for warning in answer.route.warnings]
    _print(answer, as_json, "\n".join([disposition, *warnings, *map(live_line, answer.next)]))
    if answer.state == sp.PIPELINE_STATE_ESCALATED:
        raise typer.Exit(EXIT_WAITS_FOR_PERSON)


def _enum(enum: Any, prefix: str, word: str) -> Any:
    try:
        return enum.Value(f"{prefix}_{word.upper()}")
    except ValueError:
        known = ", ".join(name.removeprefix(f"{prefix}_") for name in enum.keys()[1:])
        raise typer.BadParameter(f"{word} is none of {known}") from None


@app.command()
def skip(
    pipeline_id: PipelineId, stage: StageId, reason: Reason = "", server: Server = "", as_json: AsJson = False
) -> None:
    """Let a stage be skipped."""
    request = rq.SkipStageRequest(request_id=new_nonce(), pipeline_id=pipeline_id, stage=stage, reason=reason)
    answer = _call(server, lambda stub: stub.SkipStage(request))
    _print(answer, as_json, "\n".join([_state(answer.state), *map(live_line, answer.next)]))


@app.command()
def restart(
    pipeline_id: PipelineId, stage: StageId, reason: Reason = "", server: Server = "", as_json: AsJson = False
) -> None:
    """Run a stage, and everything after it, again."""
    request = rq.RestartFromRequest(request_id=new_nonce(), pipeline_id=pipeline_id, stage=stage, reason=reason)
    answer = _call(server, lambda stub: stub.RestartFrom(request))
    _print(answer, as_json, "\n".join([_state(answer.state), *map(live_line, answer.next)]))


@app.command()
def cancel(pipeline_id: PipelineId, reason: Reason = "", server: Server = "", as_json: AsJson = False) -> None:
    """End a pipeline."""
    request = rq.CancelPipelineRequest(request_id=new_nonce(), pipeline_id=pipeline_id, reason=reason)
    answer = _call(server, lambda stub: stub.CancelPipeline(request))
    _print(answer, as_json, _state(answer.state))


@app.command()
def show(pipeline_id: PipelineId, server: Server = "", as_json: AsJson = False) -> None:
    """Draw a pipeline's stages with their states; exit 4 while it waits for a person."""
    answer = _call(server, lambda stub: stub.GetPipeline(rq.GetPipelineRequest(pipeline_id=pipeline_id)))
    _print(answer.pipeline, as_json, draw(answer.pipeline, colours=sys.stdout.isatty()))
    if answer.pipeline.summary.state == sp.PIPELINE_STATE_ESCALATED:
        raise typer.Exit(EXIT_WAITS_FOR_PERSON)


@app.command("list")
def list_pipelines(
    run: Annotated[str, typer.Option(help="Only pipelines of this run.")] = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """List pipelines, newest first."""
    answer = _call(server, lambda stub: stub.ListPipelines(rq.ListPipelinesRequest(run_id=run)))
    lines = [
        f"{item.pipeline_id:<32} {_state(item.state):<24} {item.finished_count}/{item.stage_count} {item.template}"
        for item in answer.pipelines
    ]
    _print(answer, as_json, "\n".join(lines) or "no pipelines")


@app.command()
def watch(
    pipeline_id: PipelineId,
    after_seq: Annotated[int, typer.Option(help="Only what came after this seq.")] = 0,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Follow a pipeline's transitions until it ends."""

    async def follow(stub: Stub) -> None:
        request = rq.WatchPipelineRequest(pipeline_id=pipeline_id, after_seq=after_seq)
        async for item in stub.WatchPipeline(request):
            row = item.transition
            line = (
                f"{row.seq:>5} {row.at.ToDatetime():%H:%M:%S} {row.event:<20} {row.to_state} {row.payload_json[:100]}"
            )
            print(json.dumps(_dict(row)) if as_json else line, flush=True)

    _call(server, follow)


@app.command("import")
def import_state(
    file: File,
    barrier_file: Annotated[str, typer.Option(help="The barrier file beside it.")] = "",
    pipeline_id: Annotated[str, typer.Option("--id", help="An id of your own; default: the file's session.")] = "",
    server: Server = "",
) -> None:
    """Take a state file of version 3 or 4 as a new pipeline, and print its id."""
    request = rq.ImportStateRequest(request_id=new_nonce(), pipeline_id=pipeline_id, state_json=_read(file))
    if barrier_file:
        request.barrier_json = _read(barrier_file)
    print(_call(server, lambda stub: stub.ImportState(request)).pipeline_id)


@app.command("export")
def export_state(pipeline_id: PipelineId, server: Server = "") -> None:
    """Print a pipeline as a state file of version 4."""
    print(_call(server, lambda stub: stub.ExportState(rq.ExportStateRequest(pipeline_id=pipeline_id))).state_json)


@app.command("clean-up")
def clean_up(
    days: Annotated[float, typer.Option(help="How long ago a pipeline must have ended.")] = 3.0,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Remove reports, reflections and barriers of pipelines that ended long ago."""
    request = rq.CleanUpRequest(request_id=new_nonce())
    request.older_than.FromTimedelta(timedelta(days=days))
    answer = _call(server, lambda stub: stub.CleanUp(request))
    _print(answer, as_json, f"cleaned {answer.pipelines} pipelines")


def _state(number: Any) -> str:
    return sp.PipelineState.Name(number).removeprefix("PIPELINE_STATE_")
