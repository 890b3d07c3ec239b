"""`pointsman pipeline …`: drive a task through its stages, look at it, read what an agent said."""

import json
import sys
from datetime import timedelta
from typing import Annotated, Any

import typer

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.cli.commands.pipeline_parse import parse
from pointsman.cli.exit_codes import EXIT_WAITS_FOR_PERSON
from pointsman.cli.options.input_files import read_bytes, read_text
from pointsman.cli.render.json_output import as_dict
from pointsman.cli.render.output_files import write_file
from pointsman.cli.render.pipeline import draw, live_line
from pointsman.cli.session.control_plane import Absent
from pointsman.cli.session.pipeline_client import (
    Agent,
    AsJson,
    File,
    PipelineId,
    Reason,
    Server,
    StageId,
    Stub,
    ask,
    say,
    state_name,
    within,
)
from pointsman.services.chassis.core.ids import new_nonce
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Drive a task through its stages.")

MAX_TRANSCRIPT_BYTES = 1_048_576
MAX_BARRIER_TIMEOUT_SECONDS = 604_800
MAX_DAYS = 36_500
MAX_SEQ = 2**63 - 1

app.command()(parse)


def _transcript(name: str) -> str:
    """The end of a transcript that fits a request: whole lines, no NUL, at most a mebibyte."""
    data = read_bytes(name).decode(errors="replace").replace("\0", "\ufffd").encode()
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
def classify(
    text: Annotated[str, typer.Argument(help="The task.")], server: Server = "", as_json: AsJson = False
) -> None:
    """Say which template a task needs, and by which rule."""
    answer = ask(server, lambda stub: stub.Classify(pb.ClassifyRequest(text=text)))
    say(answer, as_json, f"{answer.template} (rule: {answer.rule})")


@app.command()
def start(  # noqa: PLR0913, PLR0917 - the options of the command
    template: Annotated[str, typer.Argument(help="A template's id, or a JSON file with an own DAG.")],
    pipeline_id: Annotated[str, typer.Option("--id", help="An id of your own.")] = "",
    agent: Agent = "",
    strict: Annotated[bool, typer.Option(help="Quality stages never go on unproven.")] = False,
    require_nonce: Annotated[
        bool, typer.Option(help="Only a route that carries the delegation's nonce counts.")
    ] = False,
    barrier_timeout: Annotated[
        float | None, typer.Option(help="Seconds that a barrier waits; default: the service's setting.")
    ] = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Start a pipeline; with --agent its first stages are delegated at once."""
    request = pb.StartPipelineRequest(
        request_id=new_nonce(),
        pipeline_id=pipeline_id,
        policy=sp.POLICY_STRICT if strict else sp.POLICY_SEED,
        require_nonce=require_nonce,
    )
    if barrier_timeout is not None:
        waits = within("--barrier-timeout", barrier_timeout, 1, MAX_BARRIER_TIMEOUT_SECONDS)
        request.barrier_timeout.FromTimedelta(timedelta(seconds=waits))
    if template.endswith(".json"):
        request.dag.CopyFrom(_dag(template))
    else:
        request.template = template
    if agent:
        request.auto_delegate.agent_id = agent
    answer = ask(server, lambda stub: stub.StartPipeline(request))
    say(answer, as_json, "\n".join([answer.pipeline_id, *map(live_line, answer.next)]))


def _dag(name: str) -> sp.Dag:
    from google.protobuf.json_format import Parse, ParseError

    try:
        return Parse(read_text(name), sp.Dag())
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
    answer = ask(server, lambda stub: stub.DelegateStage(request))
    say(answer, as_json, live_line(answer.delegation))


@app.command()
def complete(  # noqa: PLR0913, PLR0917 - the options of the command
    pipeline_id: PipelineId,
    delegation_id: Annotated[str, typer.Argument(help="The delegation that is done, such as DEV#1.")],
    verdict: Annotated[str, typer.Option(help="PASS or FAIL.")] = "",
    route: Annotated[
        str, typer.Option(help="NEXT, DEV, BARRIER, COMPLETE or ABORT; default: what the verdict asks for.")
    ] = "",
    severity: Annotated[str, typer.Option(help="With FAIL: CRITICAL, HIGH, MEDIUM or LOW.")] = "",
    hint: Annotated[str, typer.Option(help="One line for the agent that repairs it.")] = "",
    nonce: Annotated[str, typer.Option(help="The delegation's nonce, where the pipeline requires it.")] = "",
    transcript: Annotated[str, typer.Option(help="File with the agent's output instead; - is standard input.")] = "",
    report: Annotated[str, typer.Option(help="File with the stage's report.")] = "",
    agent: Agent = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Say what a stage came to; the next stages are delegated to the same agent."""
    if (transcript and verdict) or (route and not verdict):
        raise typer.BadParameter("say the result with --transcript, or with --verdict and perhaps --route")
    request = pb.CompleteStageRequest(
        request_id=new_nonce(), pipeline_id=pipeline_id, delegation_id=delegation_id, agent_id=agent
    )
    request.auto_delegate.agent_id = agent
    if report:
        request.report = read_text(report)
    if transcript:
        request.transcript = _transcript(transcript)
    elif verdict:
        request.route.verdict = _enum(rt.Verdict, "VERDICT", verdict)
        request.route.route = _enum(rt.RouteTarget, "ROUTE_TARGET", route)
        request.route.severity = _enum(rt.Severity, "SEVERITY", severity)
        request.route.hint = hint
        request.route.nonce = nonce
    answer = ask(server, lambda stub: stub.CompleteStage(request))
    disposition = pb.Disposition.Name(answer.disposition).removeprefix("DISPOSITION_")
    warnings = [f"  warning: {warning.text}" for warning in answer.route.warnings]
    say(answer, as_json, "\n".join([disposition, *warnings, *map(live_line, answer.next)]))
    if answer.state == sp.PIPELINE_STATE_ESCALATED:
        raise typer.Exit(EXIT_WAITS_FOR_PERSON)


def _enum(enum: Any, prefix: str, word: str) -> Any:
    try:
        return enum.Value(f"{prefix}_{word.upper() or 'UNSPECIFIED'}")
    except ValueError:
        known = ", ".join(name.removeprefix(f"{prefix}_") for name in enum.keys()[1:])
        raise typer.BadParameter(f"{word} is none of {known}") from None


@app.command()
def skip(
    pipeline_id: PipelineId, stage: StageId, reason: Reason = "", server: Server = "", as_json: AsJson = False
) -> None:
    """Let a stage be skipped."""
    request = rq.SkipStageRequest(request_id=new_nonce(), pipeline_id=pipeline_id, stage=stage, reason=reason)
    answer = ask(server, lambda stub: stub.SkipStage(request))
    say(answer, as_json, "\n".join([state_name(answer.state), *map(live_line, answer.next)]))


@app.command()
def restart(
    pipeline_id: PipelineId, stage: StageId, reason: Reason = "", server: Server = "", as_json: AsJson = False
) -> None:
    """Run a stage, and everything after it, again."""
    request = rq.RestartFromRequest(request_id=new_nonce(), pipeline_id=pipeline_id, stage=stage, reason=reason)
    answer = ask(server, lambda stub: stub.RestartFrom(request))
    say(answer, as_json, "\n".join([state_name(answer.state), *map(live_line, answer.next)]))


@app.command()
def cancel(pipeline_id: PipelineId, reason: Reason = "", server: Server = "", as_json: AsJson = False) -> None:
    """End a pipeline."""
    request = rq.CancelPipelineRequest(request_id=new_nonce(), pipeline_id=pipeline_id, reason=reason)
    answer = ask(server, lambda stub: stub.CancelPipeline(request))
    say(answer, as_json, state_name(answer.state))


@app.command()
def show(pipeline_id: PipelineId, server: Server = "", as_json: AsJson = False) -> None:
    """Draw a pipeline's stages with their states; exit 4 while it waits for a person."""
    answer = ask(server, lambda stub: stub.GetPipeline(rq.GetPipelineRequest(pipeline_id=pipeline_id)))
    say(answer.pipeline, as_json, draw(answer.pipeline, colours=sys.stdout.isatty()))
    if answer.pipeline.summary.state == sp.PIPELINE_STATE_ESCALATED:
        raise typer.Exit(EXIT_WAITS_FOR_PERSON)


@app.command("list")
def list_pipelines(
    run: Annotated[str, typer.Option(help="Only pipelines of this run.")] = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """List pipelines, newest first."""
    answer = ask(server, lambda stub: stub.ListPipelines(rq.ListPipelinesRequest(run_id=run)))
    lines = [
        f"{item.pipeline_id:<32} {state_name(item.state):<24} {item.finished_count}/{item.stage_count} {item.template}"
        for item in answer.pipelines
    ]
    say(answer, as_json, "\n".join(lines) or "no pipelines")


@app.command()
def watch(
    pipeline_id: PipelineId,
    after_seq: Annotated[int, typer.Option(help="Only what came after this seq.", min=0, max=MAX_SEQ)] = 0,
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
            print(json.dumps(as_dict(row, whole=True)) if as_json else line, flush=True)

    ask(server, follow, Absent.REFUSE)


@app.command("import")
def import_state(
    file: File,
    barrier_file: Annotated[str, typer.Option(help="The barrier file beside it.")] = "",
    pipeline_id: Annotated[str, typer.Option("--id", help="An id of your own; default: the file's session.")] = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Take a state file of version 3 or 4 as a new pipeline, and print its id."""
    request = rq.ImportStateRequest(request_id=new_nonce(), pipeline_id=pipeline_id, state_json=read_text(file))
    if barrier_file:
        request.barrier_json = read_text(barrier_file)
    answer = ask(server, lambda stub: stub.ImportState(request))
    say(answer, as_json, answer.pipeline_id)


@app.command("export")
def export_state(
    pipeline_id: PipelineId,
    output: Annotated[str, typer.Option("--output", "-o", help="Write the state to this file instead.")] = "",
    barrier_file: Annotated[str, typer.Option(help="Write the barriers to this file.")] = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Print a pipeline as a state file of version 4; with --json the barrier file too."""
    answer = ask(server, lambda stub: stub.ExportState(rq.ExportStateRequest(pipeline_id=pipeline_id)))
    if barrier_file:
        write_file(barrier_file, answer.barrier_json)
    if output:
        write_file(output, answer.state_json)
    if as_json or not output:
        say(answer, as_json, answer.state_json)


@app.command()
def context(
    pipeline_id: PipelineId,
    delegation_id: Annotated[str, typer.Argument(help="The delegation of the reader, such as DEV#2.")],
    handle: Annotated[str, typer.Argument(help="One of its handles, such as context:REVIEW.")],
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Print a report that is addressed to a delegation."""
    request = rq.GetContextRequest(pipeline_id=pipeline_id, delegation_id=delegation_id, handle=handle)
    answer = ask(server, lambda stub: stub.GetContext(request))
    say(answer, as_json, answer.body)


@app.command()
def reflection(pipeline_id: PipelineId, stage: StageId, server: Server = "", as_json: AsJson = False) -> None:
    """Print what the failed rounds of a stage taught."""
    request = rq.GetReflectionRequest(pipeline_id=pipeline_id, stage=stage)
    answer = ask(server, lambda stub: stub.GetReflection(request))
    say(answer, as_json, answer.body)


@app.command("clean-up")
def clean_up(
    days: Annotated[float, typer.Option(help="How long ago a pipeline must have ended.")] = 3.0,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Remove reports, reflections and barriers of pipelines that ended long ago."""
    request = rq.CleanUpRequest(request_id=new_nonce())
    request.older_than.FromTimedelta(timedelta(days=within("--days", days, 0, MAX_DAYS)))
    answer = ask(server, lambda stub: stub.CleanUp(request))
    say(answer, as_json, f"cleaned {answer.pipelines} pipelines")
