"""A hook of Claude Code: its JSON on standard input, the documented answer on standard output, always exit 0.

A hook that cannot reach the control plane never stands in the user's way: it says so and lets things go on.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
from control import Control, control_address
from handlers import HANDLERS

MAX_INPUT_BYTES = 8 * 1024 * 1024
LIMIT_SECONDS = 20.0
UNREACHABLE = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


def main() -> int:
    """Answer one hook."""
    event = _event(sys.stdin.buffer.read(MAX_INPUT_BYTES))
    handler = HANDLERS.get(str(event.get("hook_event_name")))
    answer = asyncio.run(answered(handler, event, os.environ)) if handler else {}
    if answer:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    return 0


def _event(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


async def answered(
    handler: Callable[[Control, dict[str, Any]], Awaitable[dict[str, Any]]],
    event: dict[str, Any],
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """The handler's answer, or one sentence about why there is none."""
    address = control_address(environment)
    try:
        async with asyncio.timeout(LIMIT_SECONDS), Control(address, environment) as control:
            return await handler(control, event)
    except grpc.aio.AioRpcError as error:
        if error.code() in UNREACHABLE:
            return _say(f"the control plane at {address} cannot be reached; going on without it")
        return _say(f"the control plane refused: {error.details()}")
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not stop the user
        return _say(f"the hook failed ({type(error).__name__}); going on without it")


def _say(text: str) -> dict[str, Any]:
    return {"systemMessage": f"pointsman: {text}"}


if __name__ == "__main__":
    sys.exit(main())
