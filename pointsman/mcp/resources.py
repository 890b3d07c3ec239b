"""Resources: what a run delivered, its evidence, and what its agents printed."""

import re

from mcp import MCPError, types
from pydantic import BaseModel

from pointsman.mcp.parameters import OfTask
from pointsman.mcp.results import delivery_result
from pointsman.mcp.tools import get_evidence, logs
from pointsman.mcp.workplace import Caller

_URI = re.compile(r"pointsman://runs/([^/]{1,128})/(delivery|evidence|transcript)")
MEDIA_TYPE = "application/json"
_TEMPLATES = {
    "delivery": "What a run delivered, or what is accepted so far.",
    "evidence": "What was claimed for each task, what was found, who judged it and why.",
    "transcript": "What the agents of a run printed: untrusted, and no proof of anything.",
}


def templates() -> list[types.ResourceTemplate]:
    """The kinds of resources that every run has."""
    return [
        types.ResourceTemplate(
            name=f"run-{name}",
            uri_template=f"pointsman://runs/{{run_id}}/{name}",
            description=description,
            mime_type=MEDIA_TYPE,
        )
        for name, description in _TEMPLATES.items()
    ]


async def listed(caller: Caller, size: int, cursor: str) -> tuple[list[types.Resource], str]:
    """The deliveries of the newest runs, and where the next page begins."""
    page = await caller.client.runs.page(size, cursor)
    found = [
        types.Resource(uri=f"pointsman://runs/{run.id}/delivery", name=f"{run.id} delivery", mime_type=MEDIA_TYPE)
        for run in page.runs
    ]
    return found, page.next_page_token


async def read(caller: Caller, uri: str) -> str:
    """The body of a resource."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise MCPError(
            code=types.INVALID_PARAMS, message="a resource is pointsman://runs/RUN/delivery, evidence or transcript"
        )
    run_id, kind = found.groups()
    result: BaseModel
    if kind == "delivery":
        result = delivery_result(run_id, await caller.client.runs.delivery(run_id))
    elif kind == "evidence":
        result = await get_evidence(caller, OfTask(run_id=run_id))
    else:
        result = await logs(caller, OfTask(run_id=run_id))
    return result.model_dump_json()
