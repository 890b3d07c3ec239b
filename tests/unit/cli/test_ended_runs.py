"""What `pointsman clean --ended` removes: branches and logs of ended runs, and nothing that a person has changed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import grpc
import pytest

from pointsman.api.orchestrator.v1.orchestrator_pb2 import RunSelection
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, RUN_STATE_FAILED, RUN_STATE_QUEUE, Run
from pointsman.cli.session.ended_runs import Leftover, leftovers, remove
from pointsman.client import Client, NotFound
from pointsman.worker.git import GitFailed, git, text
from tests.unit.worker.repositories import commit, repository


@dataclass(frozen=True)
class KnownRuns:
    """A client of a control plane that knows these runs."""

    known: dict[str, Run]

    @property
    def runs(self) -> "KnownRuns":
        return self

    async def selected(self, selection: RunSelection) -> AsyncIterator[Run]:
        """Those in one of the states."""
        for run_id, run in self.known.items():
            if run.state in selection.states:
                yield Run(id=run_id)

    async def get(self, run_id: str) -> Run:
        if run_id not in self.known:
            raise NotFound("RUN_NOT_FOUND", grpc.StatusCode.NOT_FOUND, "no such run")
        return self.known[run_id]


async def found(folder: Path | None, logs: Path, **known: Run) -> list[Leftover]:
    return [one async for one in leftovers(cast("Client", KnownRuns(known)), folder, logs)]


async def test_branches_of_ended_runs_are_found_unless_they_moved_are_in_use_or_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "user"
    first = await repository(folder, {"a": "1\n"})
    for name in ("run_done", "run_live", "run_used", "run_unknown", "run_moved"):
        await git(folder, "branch", f"pointsman/{name}", first)
    await git(folder, "worktree", "add", "-q", str(tmp_path / "tree"), "pointsman/run_used")
    second = await commit(folder, {"a": "2\n"})
    await git(folder, "branch", "-f", "pointsman/run_moved", second)
    done = Run(state=RUN_STATE_COMPLETE, accepted_commit=first)
    known = {"run_done": done, "run_used": done, "run_moved": done}
    known["run_live"] = Run(state=RUN_STATE_QUEUE, accepted_commit=first)
    (left,) = await found(folder, tmp_path / "none", **known)
    assert left == Leftover("run_done", "pointsman/run_done", first)
    await remove(left, folder)
    assert await found(folder, tmp_path / "none", **known) == []
    listed = await text(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads/pointsman/")
    assert listed.split() == [f"pointsman/run_{name}" for name in ("live", "moved", "unknown", "used")]


async def test_a_branch_that_moves_before_it_is_removed_stays(tmp_path: Path) -> None:
    folder = tmp_path / "user"
    first = await repository(folder, {"a": "1\n"})
    await git(folder, "branch", "pointsman/run_done", first)
    (left,) = await found(folder, tmp_path, run_done=Run(state=RUN_STATE_COMPLETE, accepted_commit=first))
    await git(folder, "branch", "-f", "pointsman/run_done", await commit(folder, {"a": "2\n"}))
    with pytest.raises(GitFailed):
        await remove(left, folder)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_logs_of_ended_runs_are_found_and_removed(tmp_path: Path) -> None:
    for name in ("run_over", "run_live"):
        (tmp_path / f"{name}.log").touch()
    known = {"run_over": Run(state=RUN_STATE_FAILED), "run_live": Run(state=RUN_STATE_QUEUE)}
    (left,) = await found(None, tmp_path, **known)
    await remove(left, None)
    assert names_in(tmp_path) == ["run_live.log"]


async def test_only_what_selected_runs_left_is_found(tmp_path: Path) -> None:
    folder, logs = tmp_path / "user", tmp_path / "logs"
    first = await repository(folder, {"a": "1\n"})
    logs.mkdir()
    states = {"run_done": RUN_STATE_COMPLETE, "run_over": RUN_STATE_FAILED, "run_live": RUN_STATE_QUEUE}
    for name in states:
        await git(folder, "branch", f"pointsman/{name}", first)
        (logs / f"{name}.log").touch()
    known = KnownRuns({name: Run(state=state, accepted_commit=first) for name, state in states.items()})
    selection = RunSelection(states=[RUN_STATE_FAILED, RUN_STATE_QUEUE])
    left = [one.run_id async for one in leftovers(cast("Client", known), folder, logs, selection)]
    assert left == ["run_over", "run_over"], "a branch and a log; a run that goes on keeps both"
