"""Which projects a caller is answered: those that its token names, or all with runs for one that may see every project."""

from pathlib import Path

import pytest

from pointsman.api.common.v1.common_pb2 import Page
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from tests.contract.access.guarded import guarded
from tests.scenarios.planes import WISH, Plane


async def answered(caller: Plane, project: str, page: Page | None = None) -> tuple[list[tuple[str, int]], str]:
    """The projects with how many runs live in them, and the token of the next page."""
    metadata = (("pointsman-project", project),)
    answer = await caller.runs.ListProjects(pb.ListProjectsRequest(page=page), metadata=metadata)
    return [(one.name, one.stuck + one.working + one.needs_you) for one in answer.projects], answer.next_page_token


async def test_a_caller_sees_its_own_projects_and_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        admin = await there.as_principal("root", "admin", project="*")
        for number, project in enumerate(("b", "a", "c", "b")):
            request = pb.SubmitRequest(request_id=f"r{number}", message=WISH)
            await admin.runs.Submit(request, metadata=(("pointsman-project", project),))
        assert (await answered(admin, "a"))[0] == [("a", 1), ("b", 2), ("c", 1)]
        first, token = await answered(admin, "a", Page(page_size=2))
        assert first == [("a", 1), ("b", 2)]
        assert await answered(admin, "a", Page(page_size=2, page_token=token)) == ([("c", 1)], "")
        for project, runs in (("b", 2), ("empty", 0)):
            viewer = await there.as_principal(f"looks-at-{project}", "viewer", project=project)
            assert await answered(viewer, project) == ([(project, runs)], "")
            assert (await answered(viewer, project, Page(page_token=token)))[0] == (
                [] if project == "b" else [("empty", 0)]
            )
