"""Containers: a command inside an image of podman or docker, where a setting names the image."""

import os
import shutil

IMAGE_SETTING = "POINTSMAN_SANDBOX_IMAGE"
ENGINE_SETTING = "POINTSMAN_SANDBOX_ENGINE"
ENGINES = ("podman", "docker")


def image() -> str:
    """The image that commands run in; empty where containers are not configured."""
    return os.environ.get(IMAGE_SETTING, "")


def engine() -> str | None:
    """Where the engine is installed that a setting names, else podman or docker."""
    named = os.environ.get(ENGINE_SETTING, "")
    return next(filter(None, map(shutil.which, (named,) if named else ENGINES)), None)


def lack() -> str:
    """What is missing for containers; empty when nothing is."""
    if not image():
        return f"no image is configured ({IMAGE_SETTING})"
    return "" if engine() else f"neither podman nor docker is installed ({ENGINE_SETTING} names another)"
