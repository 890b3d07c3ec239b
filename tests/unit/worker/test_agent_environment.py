"""The tree of an agent is set up as the project file of the submitted commit says; what set-up made is no work."""

import asyncio
import json
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Repository, Usage
from pointsman.cli.session.workers import profile_for
from pointsman.worker import CommandAgent, GiveUp, Job, Workspace
from pointsman.worker.agent_environment import AgentBase, AgentEnvironment, set_up_tree
from pointsman.worker.base_project import project_at
from pointsman.worker.git import tree_hash
from tests.unit.worker.agents import lease
from tests.unit.worker.repositories import clone_of, repository
from tests.unit.worker.repositories import commit as commit_more

SETUP = "python3 -m venv --without-pip .venv"
FILE = f'[workspace]\nsetup = ["{SETUP}"]\ninclude = [".env.test"]\nenv = {{ TZ = "UTC" }}\n'


async def design(folder: Path, commit: str, script: str) -> str:
    """The design that a shell script writes, in the tree of a commit."""
    asked = lease(assignments.PURPOSE_DESIGN, design=work.DesignRequest(intent="greet"))
    asked.assignment.repository.CopyFrom(Repository(id="repo", base_commit=commit))
    job = Job(None, "box-designer", asked, Usage())  # type: ignore[arg-type]
    profile = profile_for("", f"sh -c '{script}'")
    assert profile is not None
    made = await CommandAgent(Workspace(folder / "data" / "worker", {"repo": folder / "user"}), profile).work(job)
    assert isinstance(made, handoff.DetailDesign)
    return made.design_md.text


async def test_an_agent_finds_its_tree_set_up_and_may_change_what_is_installed(tmp_path: Path) -> None:
    commit = await repository(tmp_path / "user", {"pointsman.toml": FILE, "a": ""})
    (tmp_path / "user" / ".env.test").write_text("from the user\n")
    script = (
        "{ which python; echo $VIRTUAL_ENV $TZ $PIP_CACHE_DIR; cat .env.test; touch .venv/added && echo changed; "
        "cat $POINTSMAN_HANDOFF/by_products.json; } > $POINTSMAN_HANDOFF/detail_design.md"
    )
    python, environment, included, changed, *by_products = (await design(tmp_path, commit, script)).splitlines()
    assert python.endswith("/tree/.venv/bin/python")
    virtual, zone, downloads = environment.split()
    assert virtual.endswith("/tree/.venv")
    assert (zone, Path(downloads).parts[-3:]) == ("UTC", ("downloads", "home", "pip"))
    assert (included, changed) == ("from the user", "changed")
    assert json.loads("".join(by_products)) == [".env.test", ".venv"]


async def test_tracked_files_that_set_up_changed_are_as_they_were_committed(tmp_path: Path) -> None:
    setup = "sh -c 'echo changed > lock; rm gone; echo new > made'"
    files = {"pointsman.toml": f'[workspace]\nsetup = ["{setup}"]\n', "lock": "committed\n", "gone": "still here\n"}
    commit = await repository(tmp_path / "user", files)
    script = "{ cat lock gone made; git status --porcelain; } > $POINTSMAN_HANDOFF/detail_design.md"
    assert (await design(tmp_path, commit, script)).splitlines() == ["committed", "still here", "new", "?? made"]


async def test_a_set_up_that_fails_gives_the_assignment_up_for_good_and_starts_no_agent(tmp_path: Path) -> None:
    commit = await repository(tmp_path / "user", {"pointsman.toml": '[workspace]\nsetup = ["false"]\n'})
    with pytest.raises(GiveUp, match="set-up failed: `false`: it ended with exit code 1") as given_up:
        await design(tmp_path, commit, f"touch {tmp_path}/started")
    assert given_up.value.permanent
    assert "what to do:" in str(given_up.value)


async def test_what_set_up_made_is_no_part_of_the_tree(tmp_path: Path) -> None:
    commit = await repository(tmp_path / "user", {"pointsman.toml": FILE, "a": ""})
    clone = await clone_of(tmp_path / "user", tmp_path)
    tree = tmp_path / "tree"
    await clone.check_out(commit, tree)
    base = AgentBase(clone.path, commit, commit, await project_at(clone.path, commit))
    made = await set_up_tree(base, tree, tmp_path / "scratch", tmp_path / "root", ())
    assert made.made == {".venv"}
    assert await tree_hash(tree, made.made) == await clone.tree_of(commit)


async def test_twenty_trees_are_set_up_side_by_side(tmp_path: Path) -> None:
    file = "[workspace]\nsetup = [\"sh -c 'echo $PWD > where'\"]\n"
    commit = await repository(tmp_path / "user", {"pointsman.toml": file})
    clone = await clone_of(tmp_path / "user", tmp_path)
    base = AgentBase(clone.path, commit, commit, await project_at(clone.path, commit))
    trees = [tmp_path / f"tree-{number}" for number in range(20)]
    for tree in trees:
        await clone.check_out(commit, tree)
    await asyncio.gather(*(set_up_tree(base, tree, tree.with_suffix(".tmp"), tmp_path / "root", ()) for tree in trees))
    assert [(tree / "where").read_text().strip() for tree in trees] == [str(tree) for tree in trees]


SERVED = '[workspace]\nservices.web = "python3 -I -m http.server --bind 127.0.0.1 {port}"\n'


async def test_an_agent_has_its_services_and_one_that_does_not_start_gives_the_assignment_up(tmp_path: Path) -> None:
    commit = await repository(tmp_path / "user", {"pointsman.toml": SERVED})
    script = "echo $WEB_HOST:$WEB_PORT > $POINTSMAN_HANDOFF/detail_design.md"
    assert (await design(tmp_path, commit, script)).startswith("127.0.0.1:2")
    (tmp_path / "other").mkdir()
    missing = {"pointsman.toml": SERVED.replace("python3", "no-such-server")}
    commit = await repository(tmp_path / "other" / "user", missing)
    with pytest.raises(GiveUp, match="cannot start the service web: no-such-server") as given_up:
        await design(tmp_path / "other", commit, script)
    assert given_up.value.permanent


FETCHING = "[workspace]\nsetup = [\"sh -c 'cat lib.txt > $HOME/lib; test ! -e poisoned || date > $HOME/lib; echo ran >> $HOME/runs'\"]\n"


async def agent_tree(tmp_path: Path, commit: str, name: str, accepted: str = "") -> AgentEnvironment:
    """An agent's environment for a commit, in a tree and a scratch folder of its own."""
    clone = await clone_of(tmp_path / "user", tmp_path)
    await clone.check_out(commit, tmp_path / name)
    base = AgentBase(clone.path, commit, accepted or commit, await project_at(clone.path, commit))
    return await set_up_tree(base, tmp_path / name, tmp_path / f"{name}.tmp", tmp_path / "root", ())


async def test_agents_get_copies_of_the_downloads_that_one_set_up_fetched(tmp_path: Path) -> None:
    commit = await repository(tmp_path / "user", {"pointsman.toml": FETCHING, "lib.txt": "v1"})
    await agent_tree(tmp_path, commit, "first")
    copied = tmp_path / "first.tmp" / "downloads" / "home"
    (copied / "lib").write_text("poison")
    await agent_tree(tmp_path, commit, "second")
    after = tmp_path / "second.tmp" / "downloads" / "home"
    assert (after / "lib").read_text() == "v1"
    assert (after / "runs").read_text() == "ran\n", "set-up that only downloads runs once for all"


async def test_downloads_come_from_accepted_work_and_work_that_is_not_adds_to_its_own_copy_alone(
    tmp_path: Path,
) -> None:
    accepted = await repository(tmp_path / "user", {"pointsman.toml": FETCHING, "lib.txt": "v1"})
    other = await commit_more(tmp_path / "user", {"poisoned": ""})
    await agent_tree(tmp_path, other, "evil", accepted)
    assert (tmp_path / "evil.tmp" / "downloads" / "home" / "lib").read_text() != "v1"
    await agent_tree(tmp_path, accepted, "honest")
    assert (tmp_path / "honest.tmp" / "downloads" / "home" / "lib").read_text() == "v1"
    stored = list((tmp_path / "root").rglob("lib"))
    assert [path.read_text() for path in stored] == ["v1"]
