"""From a hook's input to its answer: the handler's, or one sentence about why there is none."""

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc
from control import Control, control_address
from handlers import HANDLERS

LIMIT_SECONDS = 20.0
UNREACHABLE = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


async def answered(event: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """What the hook answers to an event; nothing to one that nobody handles."""
    handler, address = HANDLERS.get(str(event.get("hook_event_name"))), ""
    if handler is None:
        return {}
    try:
        address = control_address(environment)
        async with asyncio.timeout(LIMIT_SECONDS), Control(address, environment) as control:
            return await handler(control, event)
    except grpc.aio.AioRpcError as error:
        if error.code() in UNREACHABLE:
            return said(f"the control plane at {address} cannot be reached; going on without it")
        return said(f"the control plane refused: {error.details()}")
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not stop the user
        return said(f"the hook failed ({type(error).__name__}); going on without it")


def said(text: str) -> dict[str, Any]:
    """A sentence for the user."""
    return {"systemMessage": f"pointsman: {text}"}
