"""Containers: a command inside an image of podman or docker, where a setting names the image.

The image brings the system and the toolchain; it needs `python3` for the probe. Of the host it sees what the spec names.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pointsman.sandbox.spec import SandboxSpec
from pointsman.sandbox.visibility import Shown, mounts, named_view

IMAGE_SETTING = "POINTSMAN_SANDBOX_IMAGE"
ENGINE_SETTING = "POINTSMAN_SANDBOX_ENGINE"
"""The engine's command line, with options of its own if it needs some."""
ENGINES = ("podman", "docker")
OWN_VARIABLES = (
    "HOME",
    "PATH",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "DOCKER_CONTEXT",
    "CONTAINERS_CONF",
)
"""What the engine itself needs from the worker's environment."""
REMOVE_SECONDS = 30.0


def image() -> str:
    """The image that commands run in; empty where containers are not configured."""
    return os.environ.get(IMAGE_SETTING, "")


def engine() -> tuple[str, ...]:
    """The command line of the engine that a setting names, else of podman or docker; empty where there is none."""
    named = shlex.split(os.environ.get(ENGINE_SETTING, ""))
    program = next(filter(None, map(shutil.which, named[:1] or ENGINES)), None)
    return (program, *named[1:]) if program else ()


def lack() -> str:
    """What is missing for containers; empty when nothing is."""
    if not image():
        return f"no image is configured ({IMAGE_SETTING})"
    return "" if engine() else f"neither podman nor docker is installed ({ENGINE_SETTING} names another)"


def command(spec: SandboxSpec, name: str) -> list[str]:
    """The engine's command line; values of variables stand in its environment, not in its arguments."""
    made = [*engine(), "run", "--rm", "-i", "--name", name, "--read-only", "--cap-drop", "all"]
    made += ["--security-opt", "no-new-privileges", "--tmpfs", "/tmp", "--workdir", str(spec.directory)]  # noqa: S108
    made += ["--pids-limit", str(spec.limits.processes), "--user", f"{os.getuid()}:{os.getgid()}"]
    made += [] if spec.network else ["--network", "none"]
    for variable, value in spec.environment.items():
        made += (
            [] if variable == "PATH" else ["--env", f"{variable}={value}" if variable in OWN_VARIABLES else variable]
        )
    for path, shown in mounts(named_view(spec)):
        made += _mount(path, shown)
    return [*made, image(), *spec.command]


def environment(spec: SandboxSpec) -> dict[str, str]:
    """The engine's environment: its own variables, and the values that it passes into the container by name."""
    own = {name: os.environ[name] for name in OWN_VARIABLES if name in os.environ}
    return {**spec.environment, **own}


def remove(name: str) -> None:
    """Ends a container that outlived its command, because the engine's daemon is its parent, not we."""
    _run((*engine(), "rm", "--force", name))


def _run(words: Sequence[str]) -> None:
    try:
        subprocess.run(words, capture_output=True, check=False, timeout=REMOVE_SECONDS)  # noqa: S603 - the engine itself
    except (OSError, subprocess.TimeoutExpired):
        return


def _mount(path: Path, shown: Shown) -> list[str]:
    if shown is Shown.HIDDEN:
        return ["--tmpfs", str(path)] if path.is_dir() else ["--volume", f"{os.devnull}:{path}:ro"]
    return ["--volume", f"{path.resolve()}:{path}{'' if shown is Shown.WRITABLE else ':ro'}"]
