"""`pointsman pipeline parse`: the effective route of a transcript, without a control plane."""

import json
from typing import Annotated

import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.input_files import read_bytes
from pointsman.cli.session.pipeline_client import File, IsJson
from pointsman.services.pipeline.domain.completion import effective_route
from pointsman.services.pipeline.domain.enums import StageKind
from pointsman.services.pipeline.domain.route import EffectiveRoute, ReportedRoute, enforce_anywhere, repair
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph
from pointsman.services.pipeline.formats.route_marker import parse_route


def parse(  # noqa: PLR0913, PLR0917 - the options of the command
    file: File = "-",
    kind: Annotated[str, typer.Option(help="The stage's kind, which decides what a repaired verdict means.")] = "DEV",
    nonce: Annotated[str, typer.Option(help="Only a marker with this nonce counts.")] = "",
    template: Annotated[str, typer.Option(help="With --stage: the route that counts in this template.")] = "",
    stage: Annotated[str, typer.Option(help="The stage of the template that speaks.")] = "",
    retries: Annotated[int, typer.Option(help="How many retries the stage has used up.", min=0)] = 0,
    as_json: IsJson = True,  # noqa: ARG001 - every command takes it
) -> None:
    """Print the effective route of a transcript as JSON; exit 1 when there is none. Needs no control plane."""
    _check(kind, template, stage)
    reported = parse_route(read_bytes(file).decode(errors="replace"), nonce or None)
    if reported is None:
        print("null")
        raise typer.Exit(EXIT_FAILED)
    print(json.dumps(_shown(_effective(reported, kind, template, stage, retries)), ensure_ascii=False, indent=2))


def _check(kind: str, template: str, stage: str) -> None:
    if kind not in StageKind.__members__:
        raise typer.BadParameter(f"kind must be one of {', '.join(StageKind)}")
    if bool(template) != bool(stage):
        raise typer.BadParameter("--template and --stage belong together")
    if template and template not in TEMPLATES:
        raise typer.BadParameter(f"template must be one of {', '.join(TEMPLATES)}")
    if stage and stage not in template_graph(template):
        known = ", ".join(template_graph(template).index) or "none"
        raise typer.BadParameter(f"the stages of {template} are {known}")


def _effective(reported: ReportedRoute, kind: str, template: str, stage: str, retries: int) -> EffectiveRoute:
    if template:
        return effective_route(reported, template_graph(template), stage, retries)
    return enforce_anywhere(repair(reported, StageKind(kind)))


def _shown(route: EffectiveRoute) -> dict[str, object]:
    return {
        "verdict": route.verdict,
        "route": route.route,
        "severity": route.severity,
        "context_file": route.context_file or None,
        "hint": route.hint or None,
        "barrier_group": route.barrier_group or None,
        "source": route.source,
        "warnings": [{"code": warning.code, "text": warning.text} for warning in route.warnings],
    }
