"""Reads single fields of a state file: checks types, names the field in refusals, preserves unknown fields."""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from pointsman._shared.strict_json import JsonError, decode_object
from pointsman.services.chassis.core.errors import Refusal, invalid_field
from pointsman.services.pipeline.domain.model import (
    ACTIVE,
    DEGRADED,
    ESCALATED,
    FAILED,
    PASSED,
    PENDING,
    READY,
    SKIPPED,
    SKIPPED_AFTER_FAIL,
    TIMED_OUT,
)

VERSION = 4
OWN = "pointsman"
"""The key under `meta` for fields that only this engine knows."""

MARK_OF_STATUS = {
    "pending": PENDING, "active": ACTIVE, "completed": PASSED, "failed": FAILED, "skipped": SKIPPED,
    "timed_out": TIMED_OUT, "escalated": ESCALATED,
}  # fmt: skip
STATUS_OF_MARK = {
    PENDING: "pending", READY: "pending", ACTIVE: "active", PASSED: "completed", DEGRADED: "completed",
    FAILED: "failed", SKIPPED: "skipped", SKIPPED_AFTER_FAIL: "skipped", TIMED_OUT: "timed_out",
    ESCALATED: "escalated",
}  # fmt: skip

FILE_FIELDS = frozenset({
    "version", "sessionId", "classification", "environment", "dag", "stages", "pipelineActive", "activeStages",
    "retries", "retryHistory", "crashes", "pendingRetry", "meta",
})  # fmt: skip
NODE_FIELDS = frozenset({"kind", "deps", "next", "onFail", "maxRetries", "barrier"})
STAGE_FIELDS = frozenset({
    "status", "agent", "verdict", "severity", "contextFile", "degraded", "forcedOn", "delegations", "nonce", "hint",
    "reflection", "returned",
})  # fmt: skip
META_FIELDS = frozenset({"status", "createdAt", OWN})

MAX_TEXT = 1024
MAX_COUNT = 1_000_000
MAX_UNKNOWN_CHARACTERS = 65_536


def refused(problem: str) -> Refusal:
    """The refusal of a state file; the problem names the field."""
    return invalid_field("state_json", problem)


def whole_file(state_json: str) -> dict[str, Any]:
    """The JSON object of a state file."""
    try:
        return decode_object(state_json)
    except JsonError as error:
        raise refused(str(error)) from error


def mapping(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A field that is an object; empty if absent or null."""
    value = content.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refused(f"'{key}' must be an object")
    return value


def entry(content: Mapping[str, Any], key: str, name: str) -> dict[str, Any]:
    """The object of one stage in a field; empty if absent or null."""
    value = mapping(content, key).get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refused(f"'{key}.{name[:64]}' must be an object")
    return value


def field(value: object, key: str) -> Any:
    """A field of a value that may be an object, else None."""
    return value.get(key) if isinstance(value, dict) else None


def text(value: object, longest: int = MAX_TEXT) -> str:
    """A text, cut to the longest; empty for any other type."""
    return value[:longest] if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """A whole number from 0 up to MAX_COUNT, else None."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT
    return value if is_count and isinstance(value, int) else None


def names(value: object) -> tuple[str, ...]:
    """The texts of a list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def moment(value: object) -> datetime | None:
    """A time with a zone, as UTC, else None."""
    try:
        found = datetime.fromisoformat(text(value))
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def unknown_fields(v4: Mapping[str, Any], stages: Collection[str], known_fields: Mapping[str, Collection[str]]) -> str:
    """The unknown fields of a file as JSON, for the next export; empty if there are none.

    `known_fields` has the known fields of `classification` and `environment`.
    """
    found = {key: value for key, value in v4.items() if key not in FILE_FIELDS}
    parts = {
        **{key: _without(mapping(v4, key), known) for key, known in known_fields.items()},
        "meta": _without(mapping(v4, "meta"), META_FIELDS),
        "dag": _of_each(v4, "dag", NODE_FIELDS, stages),
        "stages": _of_each(v4, "stages", STAGE_FIELDS, stages),
    }
    found |= {key: part for key, part in parts.items() if part}
    unknown = json.dumps(found, ensure_ascii=False) if found else ""
    if len(unknown) > MAX_UNKNOWN_CHARACTERS:
        raise refused(f"its unknown fields take more than {MAX_UNKNOWN_CHARACTERS} characters; remove some")
    return unknown


def _of_each(v4: Mapping[str, Any], key: str, known: Collection[str], stages: Collection[str]) -> dict[str, Any]:
    parts = {
        name: _without(value, known) if name in stages and isinstance(value, dict) else value
        for name, value in mapping(v4, key).items()
    }
    return {name: part for name, part in parts.items() if part}


def _without(value: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in known}


def with_unknown(content: Mapping[str, Any], unknown: Mapping[str, Any]) -> dict[str, Any]:
    """A file's content with the unknown fields added; known fields win."""
    merged = dict(content)
    for key, value in unknown.items():
        known = merged.get(key)
        if known is None:
            merged[key] = value
        elif isinstance(known, dict) and isinstance(value, dict):
            merged[key] = with_unknown(known, value)
    return merged
