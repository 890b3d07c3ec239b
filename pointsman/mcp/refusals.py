"""Refusals for a client: the reason, the field and the way out, as a tool's error or as an error of the protocol."""

import json
from typing import Any, TypeAlias

from mcp import MCPError, types
from pydantic import ValidationError

from pointsman._shared.redaction import redact
from pointsman.client import CallFailed
from pointsman.mcp.workplace import Unusable

Refused: TypeAlias = CallFailed | Unusable | ValidationError
REFUSALS = (CallFailed, Unusable, ValidationError)


def described(error: Refused) -> dict[str, Any]:
    """The refusal as a value; a model can read it and do better."""
    if isinstance(error, ValidationError):
        fields = [{"field": ".".join(map(str, one["loc"])), "description": one["msg"]} for one in error.errors()]
        message = "; ".join(f"{one['field']}: {one['description']}" for one in fields)
        return {"reason": "INVALID_FIELD", "message": message, "violations": fields}
    if isinstance(error, Unusable):
        return {"reason": "STATE_FORBIDS", "message": str(error)}
    found: dict[str, Any] = {"reason": error.reason or error.code.name, "message": redact(error.message)}
    if error.violations:
        found["violations"] = [{"field": one.field, "description": one.description} for one in error.violations]
    if error.metadata:
        found["metadata"] = {name: redact(value) for name, value in error.metadata.items()}
    if error.retry_after_seconds is not None:
        found["retry_after_seconds"] = error.retry_after_seconds
    return found


def as_tool_error(error: Refused) -> types.CallToolResult:
    """The refusal as a tool's result, so that the model sees it; as text alone, for it has not the tool's schema."""
    refusal = {"refusal": described(error)}
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=json.dumps(refusal, ensure_ascii=False))]
    return types.CallToolResult(content=content, is_error=True)


def as_protocol_error(error: Refused) -> MCPError:
    """The refusal of a request that is no tool call."""
    found = described(error)
    return MCPError(code=types.INVALID_PARAMS, message=str(found["message"]), data=found)
