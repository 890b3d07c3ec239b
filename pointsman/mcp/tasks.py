"""Tasks of both eras, served from the control plane: nothing about a task is stored here."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp import MCPError, types
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.client import StateForbids
from pointsman.mcp import parameters as take
from pointsman.mcp.refusals import REFUSALS, as_protocol_error
from pointsman.mcp.results import TERMINAL
from pointsman.mcp.task_states import handshake_task, input_requests, modern_task
from pointsman.mcp.tool_calls import Context, OpenCaller, accepted, elicited, final_result
from pointsman.mcp.tools import answer, submit_run, until_changed
from pointsman.mcp.workplace import Caller, Unusable

LISTED = 50
TASKS_ERA = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
CAPABILITY: Mapping[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


class OfTask(types.RequestParams):
    """Names a task."""

    task_id: str


class UpdateTask(OfTask):
    """What the client's person said, by the key of the request."""

    input_responses: types.InputResponses


@dataclass(frozen=True, slots=True)
class Tasks:
    """The methods `tasks/…`."""

    open_caller: OpenCaller

    async def get(self, context: Context, params: OfTask) -> dict[str, Any]:
        """How a run is; of an ended one its result, of one that asks its question."""
        return await self._with_run(context, params.task_id, _detailed)

    async def update(self, context: Context, params: UpdateTask) -> dict[str, Any]:
        """Answer the open question; what belongs to another one is ignored."""

        async def give(caller: Caller, run: Run) -> dict[str, Any]:
            returned = params.input_responses.get(run.question.id) if run.HasField("question") else None
            if isinstance(returned, types.ElicitResult) and returned.action == "accept":
                await answer(caller, accepted(run, returned))
            return {}

        return await self._with_run(context, params.task_id, give)

    async def cancel(self, context: Context, params: OfTask) -> dict[str, Any]:
        """End the run; one that has ended already is left as it is."""
        is_modern = _is_modern(context)

        async def end(caller: Caller, run: Run) -> dict[str, Any]:
            try:
                run = await caller.client.runs.cancel(run.id, "cancelled by an MCP client")
            except StateForbids:
                if not is_modern:
                    raise
            return {} if is_modern else handshake_task(run)

        return await self._with_run(context, params.task_id, end)

    async def result(self, context: Context, params: OfTask) -> dict[str, Any]:
        """2025-11-25: wait for the end of the run; its questions go to the person on the way."""

        async def wait(caller: Caller, run: Run) -> dict[str, Any]:
            while run.state not in TERMINAL:
                if run.HasField("question"):
                    await answer(caller, await elicited(context, run))
                else:
                    await until_changed(caller, run)
                run = await caller.client.runs.get(run.id)
            final = (await final_result(caller, run)).model_dump(by_alias=True, mode="json", exclude_none=True)
            return {**final, "_meta": {RELATED: {"taskId": run.id}}}

        return await self._with_run(context, params.task_id, wait)

    async def list(self, context: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """2025-11-25: the runs, newest first."""
        async with self.open_caller(context.request) as caller:
            try:
                page = await caller.client.runs.page(LISTED, params.cursor or "")
            except REFUSALS as error:
                raise as_protocol_error(error) from None
        more = {"nextCursor": page.next_page_token} if page.next_page_token else {}
        return {"tasks": [handshake_task(run) for run in page.runs], **more}

    async def middleware(self, ctx: Context, call_next: Any) -> Any:
        """2025-11-25, which the SDK has as types only: the capability, and calls that ask for a task."""
        if ctx.method == "initialize":
            answered = await call_next(ctx)
            if answered.get("protocolVersion") == TASKS_ERA:
                answered["capabilities"]["tasks"] = CAPABILITY
            return answered
        asks = ctx.method == "tools/call" and ctx.protocol_version == TASKS_ERA
        if not asks or (ctx.params or {}).get("task") is None:
            return await call_next(ctx)
        return await self._create(ctx)

    async def _create(self, context: Context) -> dict[str, Any]:
        params = context.params or {}
        if params.get("name") != "submit_run":
            raise MCPError(code=types.METHOD_NOT_FOUND, message="only submit_run can be called as a task")
        try:
            given = take.Submit.model_validate(params.get("arguments") or {})
            async with self.open_caller(context.request) as caller:
                submitted = await submit_run(caller, given)
                if submitted.run is None:
                    raise Unusable(f"no run was started: {submitted.routing}; `action` starts one all the same")
                return {"task": handshake_task(await caller.client.runs.get(submitted.run.run_id))}
        except REFUSALS as error:
            raise as_protocol_error(error) from None

    async def _with_run(
        self, context: Context, run_id: str, does: Callable[..., Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        try:
            async with self.open_caller(context.request) as caller:
                run = await caller.client.runs.get(run_id)
                if does is _detailed and not _is_modern(context):
                    return handshake_task(run)
                return await does(caller, run)
        except REFUSALS as error:
            raise as_protocol_error(error) from None


async def _detailed(caller: Caller, run: Run) -> dict[str, Any]:
    """The extension's task with what its status calls for."""
    task = modern_task(run)
    if task["status"] == "input_required":
        task["inputRequests"] = input_requests(run)
    elif task["status"] == "completed":
        final = await final_result(caller, run)
        task["result"] = final.model_dump(by_alias=True, mode="json", exclude_none=True)
    return task


def _is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS
