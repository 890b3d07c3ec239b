"""What an agent may ask of its client: permissions by policy or of a person, files and terminals within the assignment."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acp import RequestError, schema

from pointsman.acp.order import Order
from pointsman.acp.policy import Policy, Wanted, judge, wanted
from pointsman.acp.terminals import Terminals

Say = Callable[..., None]
"""Prints an event: its type, and its fields."""
CHOICES = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
LOOK_SECONDS = 0.2
MAX_REMEMBERED = 1000


class AssignmentClient:
    """The client of one session; the first of its places is the working tree."""

    def __init__(self, order: Order, say: Say) -> None:
        self._order = order
        self._places = tuple(Path(place).resolve() for place in order.places)
        self._say = say
        self._terminals = Terminals()
        self._muted = False
        self._calls: dict[str, schema.ToolCallStart] = {}
        """How calls of tools began; a request for permission may say only which call it is about."""

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Print nothing of what the agent says during the block."""
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    def on_connect(self, conn: Any) -> None:
        """Nothing is asked of the agent from here."""

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: Any
    ) -> schema.RequestPermissionResponse:
        """Allow once or reject, by policy first, else as a person answers."""
        request = wanted(tool_call, self._calls.get(tool_call.tool_call_id))
        policy = judge(request, self._order.ask_before, self._is_within)
        allowed = policy is Policy.ALLOW or (policy is Policy.ASK and await self._ask(request))
        self._say("permission", tool=request.title, policy=str(policy), allowed=allowed)
        if allowed and tool_call.tool_call_id not in self._calls:  # some agents tell of a call only by asking for it
            self._say("tool", id=tool_call.tool_call_id, title=request.title, kind=request.kind)
        chosen = next((option for kind in CHOICES[allowed] for option in options if option.kind == kind), None)
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def _ask(self, request: Wanted) -> bool:
        """What a person answers; the worker puts the answer where only it can write."""
        if not self._order.answers:
            return False
        self._say(
            "permission_request", key=request.key, kind=request.kind, title=request.title, places=list(request.places)
        )
        answer = Path(self._order.answers) / request.key
        while not answer.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(LOOK_SECONDS)
        return answer.read_text() == str(Policy.ALLOW)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Print what the agent says, plans, does and uses."""
        if self._muted:
            return
        if isinstance(update, schema.AgentMessageChunk) and isinstance(update.content, schema.TextContentBlock):
            self._say("message", text=update.content.text)
        elif isinstance(update, schema.ToolCallStart):
            if len(self._calls) < MAX_REMEMBERED:
                self._calls[update.tool_call_id] = update
            self._say("tool", id=update.tool_call_id, title=update.title, kind=update.kind or "other")
        elif isinstance(update, schema.ToolCallProgress) and update.status in ("completed", "failed"):
            self._say("tool_end", id=update.tool_call_id, status=update.status)
        elif isinstance(update, schema.AgentPlanUpdate):
            self._say("plan", entries=[f"{entry.status}: {entry.content}" for entry in update.entries])
        elif isinstance(update, schema.UsageUpdate):
            cost = update.cost.amount if update.cost is not None and update.cost.currency == "USD" else 0.0
            self._say("usage", total=update.used, cost_usd=cost)

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> schema.ReadTextFileResponse:
        """Some lines of a file."""
        text = self._place(path).read_text(errors="replace")
        if line is not None or limit is not None:
            first = max((line or 1) - 1, 0)
            text = "".join(text.splitlines(keepends=True)[first : first + limit if limit is not None else None])
        return schema.ReadTextFileResponse(content=text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> schema.WriteTextFileResponse | None:
        """A whole file."""
        place = self._place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
        return schema.WriteTextFileResponse()

    async def create_terminal(  # noqa: PLR0913, PLR0917 - the signature of the protocol
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[schema.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> schema.CreateTerminalResponse:
        """Start a command; it is within the agent's own containment."""
        variables = {one.name: one.value for one in env or ()}
        folder = str(self._place(cwd)) if cwd else str(self._places[0])
        name = await self._terminals.start([command, *(args or ())], folder, variables, output_byte_limit)
        return schema.CreateTerminalResponse(terminal_id=name)

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> schema.TerminalOutputResponse:
        """What a command printed so far."""
        terminal = self._terminals.get(terminal_id)
        printed = bytes(terminal.output).decode(errors="replace")
        return schema.TerminalOutputResponse(output=printed, truncated=terminal.truncated, exit_status=terminal.status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.WaitForTerminalExitResponse:
        """How a command ended, once it has."""
        status = (await self._terminals.ended(terminal_id)).status
        assert status is not None
        return schema.WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> schema.KillTerminalResponse | None:
        """End a command."""
        self._terminals.kill(terminal_id)
        return schema.KillTerminalResponse()

    async def release_terminal(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> schema.ReleaseTerminalResponse | None:
        """End a command and forget it."""
        self._terminals.release(terminal_id)
        return schema.ReleaseTerminalResponse()

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> schema.CreateElicitationResponse:
        """Nobody is there to be asked."""
        raise RequestError.method_not_found("elicitation/create")

    async def complete_elicitation(self, elicitation_id: str, **_: Any) -> None:
        """Nothing was asked."""

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """No extension is spoken."""
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """No extension is spoken."""

    def _is_within(self, path: Path) -> bool:
        whole = (self._places[0] / path).resolve()
        return any(whole.is_relative_to(place) for place in self._places)

    def _place(self, path: str) -> Path:
        if not self._is_within(Path(path)):
            raise RequestError.invalid_params({"path": "is outside of the assignment's folders"})
        return (self._places[0] / path).resolve()
