"""Runs an agent that speaks the Agent Client Protocol for one prompt: `bridge.main([ORDER, COMMAND…])`."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, schema, spawn_agent_process, text_block

from pointsman.acp.client import AssignmentClient
from pointsman.acp.order import Order, read_order

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
FINISHED = ("end_turn",)
INTERRUPTED = "You were interrupted in the middle of this job. Look at what is done already, and go on from there."


def main(arguments: Sequence[str]) -> None:
    """Give the prompt on standard input to the agent; exit 0 when it ended its turn."""
    order, *command = arguments
    sys.exit(asyncio.run(_run(read_order(order), command, sys.stdin.read())))


def say(event_type: str, /, **fields: Any) -> None:
    """Print an event as one line."""
    print(json.dumps({"type": event_type, **fields}), flush=True)


async def _run(order: Order, command: list[str], prompt: str) -> int:
    client: Any = AssignmentClient(order, say)
    limits = {"limit": MAX_MESSAGE_BYTES, "stderr": None}
    try:
        async with spawn_agent_process(
            client, command[0], *command[1:], env=dict(os.environ), cwd=order.places[0], transport_kwargs=limits
        ) as (connection, process):
            ended = asyncio.ensure_future(process.wait())
            turn = asyncio.ensure_future(_turn(connection, client, order, prompt))
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


async def _turn(connection: Any, client: AssignmentClient, order: Order, prompt: str) -> int:
    """One prompt in a new session, or in the one that was interrupted; SIGTERM cancels it as the protocol says."""
    files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
    able = schema.ClientCapabilities(fs=files, terminal=True)
    agent = await connection.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able)
    say("agent", name=agent.agent_info.name if agent.agent_info else "", protocol=agent.protocol_version)
    with client.muted():  # an agent that loads a session says all of it again
        session_id, resumed = await _session(connection, order, agent.agent_capabilities)
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        loop.create_task(connection.cancel(session_id=session_id))  # noqa: RUF006 - the loop ends with the turn

    loop.add_signal_handler(signal.SIGTERM, cancel)
    text = f"{INTERRUPTED}\n\n{prompt}" if resumed else prompt
    answer = await connection.prompt(session_id=session_id, prompt=[text_block(text)])
    if answer.usage is not None:
        say("usage", total=answer.usage.total_tokens, cost_usd=0.0)
    finished = answer.stop_reason in FINISHED
    say("stop" if finished else "error", message=f"the turn ended: {answer.stop_reason}")
    return 0 if finished else 1


async def _session(connection: Any, order: Order, can: schema.AgentCapabilities | None) -> tuple[str, bool]:
    """The session, and whether it is the interrupted one: resumed or loaded where the agent advertises that it can."""
    where = {"cwd": order.places[0], "additional_directories": list(order.places[1:]), "mcp_servers": []}
    resumes = can is not None and can.session_capabilities is not None and can.session_capabilities.resume is not None
    loads = can is not None and bool(can.load_session)
    again = connection.resume_session if resumes else connection.load_session if loads else None
    if order.session and again is not None:
        try:
            await again(session_id=order.session, **where)
        except RequestError as error:
            say("session_lost", id=order.session, message=str(error))
        else:
            say("session", id=order.session, again=True, resumed=True)
            return order.session, True
    session = await connection.new_session(**where)
    say("session", id=session.session_id, again=again is not None, resumed=False)
    return session.session_id, False
