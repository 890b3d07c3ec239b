"""A call of a tool: its arguments checked, its work done, its result typed; a question without an answer is elicited."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_FAILED, Run
from pointsman.mcp import parameters as take
from pointsman.mcp.questions import elicitation, filled_in, form, is_of_a_person
from pointsman.mcp.refusals import REFUSALS, as_tool_error
from pointsman.mcp.results import SubmitResult, delivery_result, run_result
from pointsman.mcp.task_states import EXTENSION, modern_task
from pointsman.mcp.tools import TOOLS, Tool
from pointsman.mcp.workplace import Caller, Unusable

Context: TypeAlias = ServerRequestContext[Any, Any]
OpenCaller = Callable[[Any], AbstractAsyncContextManager[Caller]]
"""Opens a client for the caller of an HTTP request, or for the user of this process when there is none."""


def described_tools() -> list[types.Tool]:
    """The tools with the schemas of what they take and give."""
    return [_described(tool) for tool in TOOLS.values()]


def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=not tool.changes,
        destructive_hint=tool.ends,
        idempotent_hint=not tool.changes,
        open_world_hint=True,
    )
    execution = types.ToolExecution(task_support="optional") if tool.name == "submit_run" else None
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.takes.model_json_schema(),
        output_schema=tool.gives.model_json_schema(),
        annotations=hints,
        execution=execution,
    )


async def call(context: Context, params: types.CallToolRequestParams, open_caller: OpenCaller) -> Any:
    """A tool's result, a task where a run was started and the client knows tasks, or a question to the person."""
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"there is no tool '{params.name}'; tools/list has them")
    try:
        given = tool.takes.model_validate(params.arguments or {})
        async with open_caller(context.request) as caller:
            if isinstance(given, take.Answer) and (not given.answer or is_of_a_person(given)):
                found = await _asked(context, params, given, caller)
                if not isinstance(found, take.Answer):
                    return found
                given = found
            result = await tool.does(caller, given)
            if isinstance(result, SubmitResult) and result.run and takes_tasks(context):
                return {"resultType": "task", **modern_task(await caller.client.runs.get(result.run.run_id))}
            return as_result(result)
    except REFUSALS as error:
        return as_tool_error(error)


def takes_tasks(context: Context) -> bool:
    """Whether the client declared the Tasks extension with this request."""
    declared = context.session.client_capabilities
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and declared is not None and EXTENSION in (declared.extensions or {})


async def _asked(context: Context, params: types.CallToolRequestParams, given: take.Answer, caller: Caller) -> Any:
    """The person's answer, or the request for it in an era in which the client asks and calls again."""
    run = await caller.client.runs.get(given.run_id)
    if not run.HasField("question"):
        raise Unusable(f"{run.id} asks nothing now; get_run shows what it waits for")
    declared = context.session.client_capabilities
    if declared is None or declared.elicitation is None:
        raise Unusable(_way_out(run, given))
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        returned = (params.input_responses or {}).get(run.question.id)
        if returned is None:
            wanted = {"method": "elicitation/create", "params": elicitation(run)}
            return {"resultType": "input_required", "inputRequests": {run.question.id: wanted}}
        return accepted(run, returned)
    return await elicited(context, run)


def _way_out(run: Run, given: take.Answer) -> str:
    """What to do where the client has no way to ask the person."""
    if given.answer:
        return (
            f"answer: '{given.answer}' is for a person to say, and this client cannot ask one; they answer in the console, "
            f"or with: pointsman answer {run.id} {given.answer}"
        )
    return f"answer: name one of {', '.join(form(run.question)['properties']['answer']['enum'])}"


async def elicited(context: Context, run: Run) -> take.Answer:
    """Ask the person over the connection of the call."""
    if not context.session.can_send_request:
        raise Unusable(
            f"answer: this connection cannot ask the person; name the answer, or have them say: pointsman answer {run.id}"
        )
    message = str(elicitation(run)["message"])
    returned = await context.session.elicit_form(message, form(run.question), related_request_id=context.request_id)
    return accepted(run, returned)


def accepted(run: Run, returned: Any) -> take.Answer:
    """The answer in what the client sent back; a person may also decline."""
    if not isinstance(returned, types.ElicitResult) or returned.action != "accept":
        raise Unusable("the person gave no answer; the question stays open")
    return filled_in(run.id, returned.content or {}).model_copy(update={"question_id": run.question.id})


def as_result(result: BaseModel, *, is_error: bool = False) -> types.CallToolResult:
    """A typed value, and the same as text for clients that read no structure."""
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.model_dump_json())]
    return types.CallToolResult(content=content, structured_content=result.model_dump(mode="json"), is_error=is_error)


async def final_result(caller: Caller, run: Run) -> types.CallToolResult:
    """What submit_run comes to in the end: the delivery; an error for a run that failed."""
    delivery = delivery_result(run.id, await caller.client.runs.delivery(run.id))
    submitted = SubmitResult(routing="ACTION", run=run_result(run), delivery=delivery)
    return as_result(submitted, is_error=run.state == RUN_STATE_FAILED)
