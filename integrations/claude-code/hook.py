"""A hook of Claude Code: its JSON on standard input, the documented answer on standard output, always exit 0.

A hook that cannot reach the control plane, or that a Python without Pointsman runs, never stands in the user's way: it
says so and lets things go on. So nothing but the standard library is imported before that can be said.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

MAX_INPUT_BYTES = 8 * 1024 * 1024


def main() -> int:
    """Answer one hook."""
    event = _event(sys.stdin.buffer.read(MAX_INPUT_BYTES))
    answer = _answer(event) if event else {}
    if answer:
        sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def _event(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _answer(event: dict[str, Any]) -> dict[str, Any]:
    try:
        from answering import answered  # noqa: PLC0415 - what it needs may not be there, and that has to be said

        return asyncio.run(answered(event, os.environ))
    except Exception as error:  # noqa: BLE001 - whatever this Python lacks must not stop the user
        reason = f"{sys.executable} cannot run the hook ({type(error).__name__}: {error})"
        return {
            "systemMessage": f"pointsman: {reason}; set POINTSMAN_PYTHON to one that has Pointsman; going on without it"
        }


if __name__ == "__main__":
    sys.exit(main())
