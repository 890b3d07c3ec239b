"""Servers beside a command, in the same sandbox: a runner inside starts them first and ends them last."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from pointsman.sandbox import service_runner
from pointsman.sandbox.level import Level
from pointsman.sandbox.spec import CommandResult, SandboxSpec

IMAGE_PYTHON = "python3"
NOT_STARTED = b"cannot start the service "


def with_services(spec: SandboxSpec, level: Level) -> SandboxSpec:
    """The same command below a runner that starts its services; nothing secret stands in the runner's arguments."""
    if not spec.services:
        return spec
    script, in_image = Path(service_runner.__file__), level is Level.CONTAINER
    interpreter = IMAGE_PYTHON if in_image else str(Path(sys.executable).resolve())
    described = json.dumps([[service.name, service.command, service.port] for service in spec.services])
    shown = (script,) if in_image else (script, Path(sys.base_prefix))
    return replace(
        spec,
        command=(interpreter, "-I", "-S", str(script), described, *spec.command),
        readable=(*spec.readable, *shown),
    )


def failed_service(result: CommandResult) -> str:
    """Why a service did not start, so that the command was never run; empty when all did."""
    is_said = result.exit_code == service_runner.CANNOT_START and result.output.startswith(NOT_STARTED)
    return result.excerpt() if is_said else ""
