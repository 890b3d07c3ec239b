"""Requests and answers held against the REST descriptions of forges, which are data: `tests/data/*/rest.json`."""

import copy
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

FIRST, EACH = 40, 25
"""Of each answer the first ones are checked, and then one in so many: checking all takes minutes."""
_TYPES = {"integer": r"-?[0-9]+", "boolean": "true|false"}


class Operation(NamedTuple):
    """An endpoint of the description."""

    name: str
    described: dict[str, Any]


def _as_json_schema(value: Any) -> Any:
    """OpenAPI's `nullable` in the words of JSON Schema."""
    if isinstance(value, list):
        return [_as_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: _as_json_schema(item) for key, item in value.items()}
    if schema.pop("nullable", False) is True:
        return {"anyOf": [{"type": "null"}, schema]}
    return schema


DATA = Path(__file__).parents[1] / "data"


class Description:
    """A forge's REST API, as its public description has the endpoints that are used."""

    def __init__(self, forge: str) -> None:
        self.rest = _as_json_schema(json.loads((DATA / forge / "rest.json").read_text()))
        self._seen: Counter[tuple[str, str]] = Counter()
        self._leasts: dict[int, Any] = {}
        self._validators: dict[str, Any] = {}

    def operation_of(self, method: str, path: str) -> Operation | None:
        """The endpoint of a request; none where the description has none that we use."""
        for template, methods in self.rest["paths"].items():
            pattern = re.sub(r"\{[a-z_]+\}", "[^/]+", template)
            if method.lower() in methods and re.fullmatch(pattern, path):
                return Operation(f"{method} {template}", methods[method.lower()])
        return None

    def problems_of(self, method: str, path: str, query: dict[str, str], body: Any) -> list[str]:
        """What of a request its description does not allow."""
        operation = self.operation_of(method, path)
        if operation is None:
            return [f"no endpoint {method} {path}"]
        known = {one["name"]: one["schema"] for one in map(self._resolved, operation.described["parameters"])}
        wrong = [
            f"query {name}={value}"
            for name, value in query.items()
            if name not in known or not _is_value(value, known[name])
        ]
        described = operation.described.get("requestBody")
        if described is None:
            return wrong + ([f"a body for {operation.name}"] if body else [])
        schema = described["content"]["application/json"]["schema"]
        wrong += [f"field {name}" for name in body or {} if name not in schema["properties"]]
        return wrong + [error.message for error in self._validator(json.dumps(schema)).iter_errors(body)]

    def sampled_problems(self, operation: Operation, status: int, answer: Any) -> list[str]:
        """What of some of many answers their description does not allow."""
        key = (operation.name, str(status))
        self._seen[key] += 1
        return (
            []
            if self._seen[key] > FIRST and self._seen[key] % EACH
            else self.problems_of_answer(operation, status, answer)
        )

    def problems_of_answer(self, operation: Operation, status: int, answer: Any) -> list[str]:
        """What of an answer its description does not allow."""
        if str(status) not in operation.described["responses"]:
            return [f"{operation.name} answers {status}"]
        schema = self.answer_schema(operation, status)
        if schema is None:
            return []
        return [
            f"{operation.name} {status}: {error.json_path} {error.message[:200]}"
            for error in self._validator(json.dumps(schema)).iter_errors(answer)
        ]

    def answer_schema(self, operation: Operation, status: int) -> dict[str, Any] | None:
        """The schema of an answer; none where it has no content."""
        response = self._resolved(operation.described["responses"].get(str(status), {}))
        content = response.get("content", {}).get("application/json")
        return content["schema"] if content else None

    def completed(self, operation: Operation, status: int, answer: Any) -> Any:
        """An answer with everything that the description requires beside it, as little as it allows."""
        schema = self.answer_schema(operation, status)
        return answer if schema is None else self._filled(schema, answer)

    def _filled(self, schema: dict[str, Any], value: Any) -> Any:
        schema = self._resolved(schema)
        if "anyOf" in schema and value is not None:
            schema = self._resolved(schema["anyOf"][-1])
        if isinstance(value, list) and "items" in schema:
            return [self._filled(schema["items"], item) for item in value]
        if not isinstance(value, dict):
            return value
        properties = schema.get("properties", {})
        least = self._least_of(schema) if properties else {}
        given = {
            name: self._filled(properties[name], item) if name in properties else item for name, item in value.items()
        }
        return {**copy.deepcopy(least), **given}

    def _least_of(self, schema: dict[str, Any]) -> Any:
        """The least value, remembered: schemas are parts of one description that stays."""
        if id(schema) not in self._leasts:
            self._leasts[id(schema)] = self._least(json.dumps(schema))
        return self._leasts[id(schema)]

    def _least(self, text: str) -> Any:
        """The least value that a schema allows: null where it may be, no field that is not required."""
        schema = self._resolved(json.loads(text))
        if "enum" in schema:
            return schema["enum"][0]
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self._least(json.dumps(schema[choice][0]))
        kind = schema.get("type", "object" if "properties" in schema else "null")
        if kind == "object":
            properties = schema.get("properties", {})
            return {name: self._least(json.dumps(properties[name])) for name in schema.get("required", ())}
        formats = {"date-time": "2026-01-01T00:00:00Z", "uri": "https://github.test/"}
        text_ = formats.get(schema.get("format", ""), "x")
        return {"string": text_, "integer": 1, "number": 1, "boolean": False, "array": [], "null": None}[kind]

    def _resolved(self, part: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in part:
            found: Any = self.rest
            for key in part["$ref"].removeprefix("#/").split("/"):
                found = found[key]
            part = found
        return part

    def _validator(self, text: str) -> Any:
        if text not in self._validators:
            schema = {**json.loads(text), "components": self.rest["components"]}
            self._validators[text] = Draft202012Validator(schema)
        return self._validators[text]


def _is_value(value: str, schema: dict[str, Any]) -> bool:
    pattern = _TYPES.get(schema.get("type", ""), ".*")
    return bool(re.fullmatch(pattern, value)) and ("enum" not in schema or value in schema["enum"])


GITHUB, GITLAB = Description("github"), Description("gitlab")
