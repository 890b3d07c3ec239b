"""Reads the snapshot that the thinking router decides on: the latch and the artifacts."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pointsman.services.chassis.core.clock import from_us
from pointsman.services.router.domain.thinking import Artifact, FileState, Latch, Need, Snapshot, Status

STATE = Path(".claude") / "state" / "thinking"
LATCH = Path(".claude") / "latch.lock"
MAX_BYTES = 1 << 20
NOTHING = "tag:yaml.org,2002:null"


_BAD_SCALARS = (ArithmeticError, AttributeError, LookupError, TypeError)
"""What the loader raises for a scalar that is not what its tag says, such as `!!timestamp soon`."""


class UnreadableError(Exception):
    """A file exists but cannot be parsed."""


class _PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases, which can expand a few bytes to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuses aliases before they are expanded."""
        if self.check_event(yaml.events.AliasEvent):
            raise UnreadableError("aliases are not taken")
        return super().compose_node(parent, index)


def default_latch() -> Path:
    """The default path of the latch."""
    return Path.home() / LATCH


def take_snapshot(root: Path, latch: Path) -> Snapshot:
    """Reads the files of a project that the router decides on."""
    artifacts = {name: _artifact(root / STATE, name) for name in ("blocker", "trail", "research", "delta", "plan")}
    return Snapshot(latch=_latch(latch), **artifacts)


class Document(NamedTuple):
    """A YAML mapping: its value, and its node, in which a key may occur twice."""

    content: Mapping[str, Any]
    written: yaml.MappingNode


def load_yaml(file: Path) -> Document:
    """A YAML mapping of at most a mebibyte."""
    if not file.is_file():
        raise UnreadableError("not a regular file")
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UnreadableError("larger than 1 MiB")
        loader = _PlainLoader(data)
        written = loader.get_single_node()
        content = loader.construct_document(written) if written is not None else None
    except (OSError, yaml.YAMLError, ValueError, RecursionError, *_BAD_SCALARS) as error:
        raise UnreadableError(type(error).__name__) from None
    if not isinstance(content, dict) or not isinstance(written, yaml.MappingNode):
        raise UnreadableError("no mapping")
    return Document(content, written)


def _latch(file: Path) -> Latch:
    if not os.path.lexists(file):
        return Latch()
    try:
        content = load_yaml(file).content
    except UnreadableError:
        return Latch(FileState.UNREADABLE)
    return Latch(FileState.PARSED, _moment(content.get("created_at")), _is_alive(content.get("pid")))


def _is_alive(pid: Any) -> bool:
    """Whether a process with this id runs on this machine, under any user."""
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 1 << 31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _artifact(folder: Path, name: str) -> Artifact:
    file = folder / f"{name}.latest.yaml"
    if not os.path.lexists(file):
        return Artifact()
    try:
        content, written = load_yaml(file)
        modified_at = from_us(file.stat().st_mtime_ns // 1000)
    except (UnreadableError, OSError):
        return Artifact(FileState.UNREADABLE)
    envelope = _mapping(content.get("envelope"))
    body = {**content, **_mapping(content.get(name))}
    return Artifact(
        state=FileState.PARSED,
        status=_status(envelope.get("status", content.get("status"))),
        created_at=_moment(envelope.get("timestamp")) or _moment(content.get("created_at")) or modified_at,
        needs=_needs(body.get("needs")),
        finished=body.get("ready" if name == "plan" else "complete") is True,
        env_check=tuple(_env_checks(written, ("envelope", name))),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _status(value: Any) -> Status:
    status = value.upper() if isinstance(value, str) else ""
    return Status(status) if status in ("OK", "ERROR") else Status.UNKNOWN


def _needs(value: Any) -> tuple[Need, ...]:
    items = value if isinstance(value, list) else [value]
    named = {item.strip().upper() for item in items if isinstance(item, str)}
    return tuple(need for need in Need if need in named)


def _env_checks(written: yaml.MappingNode, places: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """All pairs of all env_check mappings, at the top and below the named keys, duplicates included."""
    for key, value in written.value:
        if key.value == "env_check":
            yield from _flat("", value)
        elif key.value in places and isinstance(value, yaml.MappingNode):
            yield from _env_checks(value, ())


def _flat(name: str, node: yaml.Node) -> Iterator[tuple[str, str]]:
    """All scalar values below env_check with their names, at any depth."""
    if isinstance(node, yaml.MappingNode):
        for key, inner in node.value:
            yield from _flat(f"{name}.{key.value}" if name else str(key.value), inner)
    elif isinstance(node, yaml.SequenceNode):
        for number, inner in enumerate(node.value):
            yield from _flat(f"{name}[{number}]", inner)
    elif node.tag != NOTHING:
        yield name, node.value


def _moment(value: Any) -> datetime | None:
    """Parses a time; one without a zone is in UTC."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return datetime.combine(value, time.min, UTC) if isinstance(value, date) else None
