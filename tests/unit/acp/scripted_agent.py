"""An agent that speaks the Agent Client Protocol by hand, and does what its first argument says."""

import asyncio
import os
import sys
from typing import Any, cast

from acp import RequestError, run_agent, schema, text_block


class ScriptedAgent:
    """One session, one prompt."""

    def __init__(self, behaviour: str) -> None:
        self.behaviour = behaviour
        self.client: Any = None
        self.cwd = ""
        self.session = ""
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        resume = schema.SessionResumeCapabilities() if self.behaviour == "resumes" else None
        able = schema.AgentCapabilities(
            load_session=self.behaviour in ("loads", "forgot"),
            session_capabilities=schema.SessionCapabilities(resume=resume),
        )
        return schema.InitializeResponse(protocol_version=protocol_version, agent_capabilities=able)

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        self.cwd = cwd
        return schema.NewSessionResponse(session_id="s1")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        if self.behaviour == "forgot":
            raise RequestError.resource_not_found(session_id)
        await self.say("all that was said before")
        self.session = f"loaded {session_id}"
        return schema.LoadSessionResponse()

    async def resume_session(self, cwd: str, session_id: str, **_: Any) -> schema.ResumeSessionResponse:
        self.session = f"resumed {session_id}"
        return schema.ResumeSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        done: Any = getattr(self, self.behaviour)
        return schema.PromptResponse(stop_reason=await done(session_id))

    async def say(self, text: str) -> None:
        chunk = schema.AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text))
        await self.client.session_update(session_id="s1", update=chunk)

    async def works(self, session_id: str) -> str:
        await self.client.write_text_file(session_id=session_id, path=f"{self.cwd}/made.txt", content="one\ntwo\n")
        read = await self.client.read_text_file(session_id=session_id, path=f"{self.cwd}/made.txt", line=2, limit=1)
        await self.say(f"read {read.content.strip()}")
        for name, kind, status in (("c1", "read", "completed"), ("c2", "execute", "failed")):
            await self.calls_a_tool(name, kind, status)
        for path in (f"{self.cwd}/made.txt", "/etc/passwd"):
            await self.say(f"{path.rpartition('/')[2]}: {await self.allowed(session_id, path)}")
        try:
            await self.client.read_text_file(session_id=session_id, path="/etc/hostname")
        except RequestError as error:
            await self.say(f"outside: {error}")
        made = await self.client.create_terminal(session_id=session_id, command="echo from the terminal; exit 3")
        ended = await self.client.wait_for_terminal_exit(session_id=session_id, terminal_id=made.terminal_id)
        shown = await self.client.terminal_output(session_id=session_id, terminal_id=made.terminal_id)
        await self.client.release_terminal(session_id=session_id, terminal_id=made.terminal_id)
        await self.say(f"{shown.output.strip()}, {ended.exit_code}")
        used = schema.UsageUpdate(
            session_update="usage_update", used=321, size=1000, cost=schema.Cost(amount=0.5, currency="USD")
        )
        await self.client.session_update(session_id=session_id, update=used)
        return "end_turn"

    async def calls_a_tool(self, name: str, kind: Any, status: Any) -> None:
        begun = schema.ToolCallStart(session_update="tool_call", tool_call_id=name, title="a call", kind=kind)
        await self.client.session_update(session_id="s1", update=begun)
        ended = schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=name, status=status)
        await self.client.session_update(session_id="s1", update=ended)

    async def allowed(self, session_id: str, path: str) -> str:
        call = schema.ToolCallUpdate(tool_call_id="t1", title="edit", locations=[schema.ToolCallLocation(path=path)])
        return await self.permission(session_id, call)

    async def permission(self, session_id: str, call: schema.ToolCallUpdate) -> str:
        kinds: tuple[Any, ...] = ("allow_always", "allow_once", "reject_once")
        options = [schema.PermissionOption(option_id=kind, name=kind, kind=kind) for kind in kinds]
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
        return str(answer.outcome.option_id)

    async def loads(self, session_id: str) -> str:
        await self.say(self.session)
        return "end_turn"

    resumes = loads

    async def forgot(self, session_id: str) -> str:
        await self.say("new")
        return "end_turn"

    async def asks(self, session_id: str) -> str:
        begun = schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id="t9",
            title="look something up",
            kind="fetch",
            raw_input={"url": "http://localhost"},
        )
        await self.client.session_update(session_id=session_id, update=begun)
        await self.say(await self.permission(session_id, schema.ToolCallUpdate(tool_call_id="t9")))
        place = schema.ToolCallLocation(path="/etc/passwd")
        edit = schema.ToolCallUpdate(tool_call_id="t8", title="edit", kind="edit", locations=[place])
        await self.say(f"edit: {await self.permission(session_id, edit)}")
        return "end_turn"

    async def crashes(self, session_id: str) -> str:
        await self.say("about to die")
        os._exit(7)

    async def refuses(self, session_id: str) -> str:
        return "refusal"

    async def waits(self, session_id: str) -> str:
        await self.say("waiting")
        await self.cancelled.wait()
        return "cancelled"


asyncio.run(run_agent(cast("Any", ScriptedAgent(sys.argv[1])), use_unstable_protocol=True))
