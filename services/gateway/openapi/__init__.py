"""The contract as an OpenAPI 3.1 document, made from the protos with their comments when the code is generated."""

from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pointsman.services.gateway.contract import METHODS, Method, services
from pointsman.services.gateway.openapi.comments import Comments
from pointsman.services.gateway.openapi.schemas import Schemas

DOCUMENT = Path(__file__).parent / "openapi.json"
MOCK_PATH = "/api/v1/agents/debug/mock-policy"
ABOUT = """Every RPC of the protos over HTTP: `POST /api/v1/<context>.<Service>/<Method>` with the request as JSON.
RPCs whose request has no `request_id` change nothing and are also answered to `GET`, with the request's fields as query
parameters (`page.page_size=10`, `labels.team=a`, lists by repetition).

Field names are those of the protos (lower camel case is taken too), 64-bit numbers are strings, times are RFC 3339,
durations are like `1.5s`, bytes are base64, enums are names. Unknown fields, keys given twice and NaN are refused.

Headers: `pointsman-project` (default `local`), `traceparent`, `authorization`.

Streams are server-sent events: `data` is one answer, `id` is its seq (or position), and `Last-Event-ID` goes on after it.
`event: refusal` carries an error and ends the stream, `event: end` says that there will be no more.
Client streams take `application/x-ndjson`: one request a line."""


def document(files: FileDescriptorSet) -> dict[str, Any]:
    """The whole document."""
    comments = Comments(files)
    schemas = Schemas(comments)
    paths = {path: _operations(method, comments, schemas) for path, method in METHODS.items()}
    tags = [
        {"name": f"{_context(one.full_name)}.{one.name}", "description": comments.of(one.full_name)}
        for one in services()
        if one.full_name in {method.full_name[1:].rpartition("/")[0] for method in METHODS.values()}
    ]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pointsman", "version": "v1", "description": ABOUT, "license": {"name": "Apache-2.0"}},
        "tags": tags,
        "paths": paths | {MOCK_PATH: _mock_policy()},
        "components": {"schemas": dict(sorted({**schemas.made, "Error": _error()}.items()))},
    }


def _context(full_name: str) -> str:
    return full_name.removeprefix("pointsman.api.").split(".")[0]


def _operations(method: Method, comments: Comments, schemas: Schemas) -> dict[str, Any]:
    text = comments.of(method.full_name.strip("/").replace("/", "."))
    shared = {
        "tags": [method.service],
        "summary": text.partition(". ")[0].partition("\n")[0],
        "description": text,
        "responses": {"200": _answer(method, schemas), "default": _failure()},
    }
    media_type = "application/x-ndjson" if method.streams_in else "application/json"
    body = {"required": True, "content": {media_type: {"schema": schemas.reference(method.request.DESCRIPTOR)}}}
    post = {"operationId": f"{method.service}.{method.name}", **shared, "requestBody": body}
    if not method.is_read:
        return {"post": post}
    get = {"operationId": f"{method.service}.{method.name}.get", **shared, "parameters": _parameters(method, schemas)}
    return {"get": get, "post": post}


def _parameters(method: Method, schemas: Schemas) -> list[dict[str, Any]]:
    """The fields that fit into a query; nested ones by their path."""
    found: list[dict[str, Any]] = []
    for field in method.request.DESCRIPTOR.fields:
        found += _parameter(field, "", schemas)
    return found


def _parameter(field: Any, prefix: str, schemas: Schemas) -> list[dict[str, Any]]:
    name, inner = prefix + field.name, field.message_type
    if inner is not None and not inner.full_name.startswith("google.protobuf."):
        if field.is_repeated:
            return []
        return [one for nested in inner.fields for one in _parameter(nested, f"{name}.", schemas)]
    schema = schemas.field(field)
    return [{"name": name, "in": "query", "schema": schema, "description": schema.get("description", "")}]


def _answer(method: Method, schemas: Schemas) -> dict[str, Any]:
    schema = schemas.reference(method.response.DESCRIPTOR)
    if not method.streams_out:
        return {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    stream = {"schema": {"type": "string"}, "x-event-data": schema}
    return {"description": "Events; the data of each is one answer.", "content": {"text/event-stream": stream}}


def _failure() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": "Refused; the reason says why.", "content": content}


def _error() -> dict[str, Any]:
    text = {"type": "string"}
    violation = {"type": "object", "properties": {"field": text, "description": text}}
    properties = {
        "code": {**text, "description": "The gRPC status code."},
        "reason": {**text, "description": "A value of common.v1.ErrorReason without its prefix."},
        "message": {**text, "description": "For people; never to be matched."},
        "metadata": {"type": "object", "additionalProperties": text},
        "violations": {"type": "array", "items": violation, "description": "The fields at fault."},
        "retry_after_seconds": {"type": "number", "description": "Where trying again helps: when."},
    }
    error = {"type": "object", "required": ["code", "reason", "message"], "properties": properties}
    return {"type": "object", "required": ["error"], "properties": {"error": error}}


def _mock_policy() -> dict[str, Any]:
    words = {"type": "object", "required": ["role", "outcome"], "properties": {"role": {}, "outcome": {}}}
    words["properties"] = {
        "role": {"enum": ["executor", "reviewer", "searcher", "all"]},
        "outcome": {"enum": ["success", "failure", "slow", "silent", "malformed", "no_evidence", "forged_verdict"]},
    }
    responses = {"200": {"description": "The policy of each role."}, "default": _failure()}
    tags, about = (
        ["orchestrator.MockService"],
        "The mock agents' behaviour, in plain words; only in mock or debug mode.",
    )
    body = {"required": True, "content": {"application/json": {"schema": words}}}
    return {
        "get": {"tags": tags, "operationId": "mock-policy.get", "summary": about, "responses": responses},
        "post": {
            "tags": tags, "operationId": "mock-policy.set", "summary": about, "requestBody": body, "responses": responses,
        },
    }  # fmt: skip
