"""Names that a manifest takes: a package or program called like a test runner would be installed in its place."""

import configparser
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from pointsman.proof.checks import PROGRAMS, RUNNER_MODULES, Refused

RUNNERS = frozenset(
    {*PROGRAMS, *RUNNER_MODULES, "chai", "ava", "tap", "tape", "nyc", "c8", "bats", "sh", "bash", "env"}
)
"""Names that decide what a proof command starts, or what its tests compare with."""
_KEYS = {
    "pyproject.toml": (
        ("project", "scripts"),
        ("project", "gui-scripts"),
        ("tool", "poetry", "scripts"),
        ("tool", "pdm", "scripts"),
    ),
    "package.json": (("bin",),),
}
"""Where manifests name programs that an installation puts on the path."""


def check_manifests(texts: Mapping[str, tuple[bytes, bytes]]) -> tuple[Refused, ...]:
    """Manifests, before and after, that take a name which stands for a runner and which they did not have before."""
    return tuple(
        Refused(path, f"a package or program named {name} would be installed in place of the real one")
        for path, (before, after) in sorted(texts.items())
        for name in sorted((_names(path, after) - _names(path, before)) & RUNNERS)
    )


def is_manifest(path: str) -> bool:
    """Whether a file names packages and programs in a way that is read here."""
    return PurePosixPath(path).name in (*_KEYS, "setup.cfg")


def _names(path: str, content: bytes) -> set[str]:
    """The names of a manifest's package and programs; none of one that cannot be read, which installs nothing."""
    name, text = PurePosixPath(path).name, content.decode(errors="replace")
    try:
        if name == "setup.cfg":
            return {one.lower() for one in _of_setup_cfg(text)}
        document = tomllib.loads(text) if name.endswith(".toml") else json.loads(text or "{}")
    except (ValueError, configparser.Error):
        return set()
    return {one.lower().rpartition("/")[2] for one in _of_document(document, _KEYS[name])}


def _of_document(document: Any, keys: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    for path in (("name",), ("project", "name"), ("tool", "poetry", "name"), *keys):
        value = document
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield from map(str, value)
        elif isinstance(value, str):
            yield PurePosixPath(value).stem if path == ("bin",) else value


def _of_setup_cfg(text: str) -> Iterator[str]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    yield parser.get("metadata", "name", fallback="") or ""
    scripts = parser.get("options.entry_points", "console_scripts", fallback="") or ""
    yield from (line.partition("=")[0].strip() for line in scripts.splitlines())
