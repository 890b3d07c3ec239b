"""The planner's plan.json: its schema, and every problem of one that does not fit."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib.resources import files as resources
from typing import Any

MOST_SHOWN = 40
_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
}


def schema_text() -> str:
    """The JSON schema of plan.json, as the planner is given it."""
    return (resources("pointsman.worker") / "prompts" / "plan.schema.json").read_text(encoding="utf-8")


def problems(value: Any) -> list[str]:
    """Everything in a plan that the schema does not allow, with its place."""
    return list(_problems(json.loads(schema_text()), value, "plan"))[:MOST_SHOWN]


def _problems(schema: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
    kind = schema["type"]
    if not _is(kind, value):
        yield f"{where}: takes {_article(kind)}"
        return
    for key, check in _CHECKS.items():
        if key in schema and (found := check(schema[key], value)):
            yield f"{where}: {found}"
    if kind == "object":
        yield from _object_problems(schema, value, where)
    elif kind == "array":
        for number, item in enumerate(value):
            yield from _problems(schema["items"], item, f"{where}[{number}]")


def _is(kind: str, value: Any) -> bool:
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "ao" else f"a {kind}"


def _object_problems(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> Iterator[str]:
    known = schema["properties"]
    for name in value.keys() - known.keys():
        near = get_close_matches(name, list(known), n=1)
        yield f"{where}.{name}: there is no such field{f'; did you mean {near[0]}?' if near else ''}"
    for name in schema["required"]:
        if name not in value:
            yield f"{where}.{name}: is missing"
    for name, item in value.items():
        if name in known:
            yield from _problems(known[name], item, f"{where}.{name}")


_CHECKS: Mapping[str, Callable[[Any, Any], str]] = {
    "pattern": lambda pattern, text: "" if re.search(pattern, text) else f"has to match {pattern}",
    "enum": lambda words, text: "" if text.upper() in words else f"takes one of {', '.join(words)}",
    "minLength": lambda least, text: "" if len(text) >= least else "is empty",
    "maxLength": lambda most, text: "" if len(text) <= most else f"has more than {most} characters",
    "minItems": lambda least, items: "" if len(items) >= least else f"needs at least {least}",
    "maxItems": lambda most, items: "" if len(items) <= most else f"takes at most {most}",
    "minimum": lambda least, number: "" if number >= least else f"is below {least}",
    "maximum": lambda most, number: "" if number <= most else f"is above {most}",
}
