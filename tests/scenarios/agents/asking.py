"""An agent by ACP that asks a person before it writes the greeting, and goes on with its session after its death."""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any, cast

from acp import run_agent, schema, text_block

HANDOFF, TREE, HOME = (Path(os.environ[name]) for name in ("POINTSMAN_HANDOFF", "POINTSMAN_WORKTREE", "HOME"))
OUTSIDE = "/usr/share/dict/words"


class Asking:
    """One session."""

    client: Any = None
    goes_on = False

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        able = schema.AgentCapabilities(load_session=True)
        return schema.InitializeResponse(protocol_version=protocol_version, agent_capabilities=able)

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        (HOME / "session").write_text("s1")
        return schema.NewSessionResponse(session_id="s1")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        assert (HOME / "session").read_text() == session_id
        self.goes_on = True
        return schema.LoadSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        pass

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        begun = TREE / "begun.txt"
        await self.say("the session goes on" if self.goes_on else "a new session")
        await self.say("begun before" if begun.exists() else "begins")
        begun.write_text("half done\n")
        place = schema.ToolCallLocation(path=OUTSIDE)
        call = schema.ToolCallUpdate(tool_call_id="t1", title="Read the dictionary", kind="read", locations=[place])
        kinds: tuple[Any, ...] = ("allow_once", "reject_once")
        options = [schema.PermissionOption(option_id=kind, name=kind, kind=kind) for kind in kinds]
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
        await self.say(f"answered: {answer.outcome.option_id}")
        begun.unlink()
        work()
        return schema.PromptResponse(stop_reason="end_turn")

    async def say(self, text: str) -> None:
        chunk = schema.AgentMessageChunk(session_update="agent_message_chunk", content=text_block(f"{text}\n"))
        await self.client.session_update(session_id="s1", update=chunk)


def work() -> None:
    """The greeting, with its evidence."""
    changed = TREE / "hello/__init__.py"
    changed.write_text(changed.read_text().replace("raise NotImplementedError", 'return f"Hello, {name}!"'))
    proof = ("python3", "-m", "unittest", "discover", "-q")
    subprocess.run(["pointsman", "evidence", "run", "--id", "E1", "--", *proof], check=True, stdout=subprocess.DEVNULL)
    criteria = json.loads((HANDOFF / "acceptance_criteria.json").read_text())
    claim = {"id": "C1", "statement": "it greets", "criterion_ids": [one["id"] for one in criteria]}
    (HANDOFF / "claims.json").write_text(json.dumps([{**claim, "evidence_ids": ["E1"]}]))
    files = [{"path": "hello/__init__.py", "change": "MODIFIED"}]
    (HANDOFF / "changed_files.json").write_text(json.dumps(files))


asyncio.run(run_agent(cast("Any", Asking())))
