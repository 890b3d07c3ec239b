"""Runs an agent that speaks the Agent Client Protocol for one prompt: `bridge.main([FOLDER…, "--", COMMAND…])`."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, schema, spawn_agent_process, text_block

from pointsman.acp.client import AssignmentClient

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
SEPARATOR = "--"
FINISHED = ("end_turn",)


def main(arguments: Sequence[str]) -> None:
    """Give the prompt on standard input to the agent; exit 0 when it ended its turn."""
    place = arguments.index(SEPARATOR)
    folders, command = [Path(one) for one in arguments[:place]], list(arguments[place + 1 :])
    sys.exit(asyncio.run(_run(folders, command, sys.stdin.read())))


def say(event_type: str, /, **fields: Any) -> None:
    """Print an event as one line."""
    print(json.dumps({"type": event_type, **fields}), flush=True)


async def _run(folders: list[Path], command: list[str], prompt: str) -> int:
    client: Any = AssignmentClient(folders, say)
    limits = {"limit": MAX_MESSAGE_BYTES, "stderr": None}
    try:
        async with spawn_agent_process(
            client, command[0], *command[1:], env=dict(os.environ), cwd=folders[0], transport_kwargs=limits
        ) as (connection, process):
            ended = asyncio.ensure_future(process.wait())
            turn = asyncio.ensure_future(_turn(connection, folders, prompt))
            await asyncio.wait((ended, turn), return_when=asyncio.FIRST_COMPLETED)
            if turn.done() and not isinstance(turn.exception(), ConnectionError):
                ended.cancel()
                return turn.result()
            turn.cancel()
            say("error", message=f"the agent ended with exit code {await ended} before its turn did")
            return 1
    except RequestError as error:
        say("error", message=f"{error} ({error.code})", data=error.data)
    except OSError as error:
        say("error", message=f"the agent cannot be started: {error}")
    return 1


async def _turn(connection: Any, folders: list[Path], prompt: str) -> int:
    """One session with one prompt; SIGTERM cancels it as the protocol says."""
    files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
    able = schema.ClientCapabilities(fs=files, terminal=True)
    agent = await connection.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able)
    say("agent", name=agent.agent_info.name if agent.agent_info else "", protocol=agent.protocol_version)
    others = [str(folder) for folder in folders[1:]]
    session = await connection.new_session(cwd=str(folders[0]), additional_directories=others, mcp_servers=[])
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        loop.create_task(connection.cancel(session_id=session.session_id))  # noqa: RUF006 - the loop ends with the turn

    loop.add_signal_handler(signal.SIGTERM, cancel)
    answer = await connection.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
    if answer.usage is not None:
        say("usage", total=answer.usage.total_tokens, cost_usd=0.0)
    finished = answer.stop_reason in FINISHED
    say("stop" if finished else "error", message=f"the turn ended: {answer.stop_reason}")
    return 0 if finished else 1
