"""What a profile promises its command: a home, places to write to, a handoff folder within reach, its words filled in."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.cli.session.workers import profile_for
from pointsman.profiles import Profile
from pointsman.sandbox import Level, available_level
from pointsman.sandbox.level import MAX_LEVEL_SETTING
from pointsman.worker import CommandAgent, Workspace, command
from pointsman.worker.sdk import GiveUp, Job
from tests.helpers.levels import levels_here
from tests.unit.worker.agents import lease
from tests.unit.worker.repositories import repository
from tests.unit.worker.test_verifier import Shelf

LEAVE = 'import os, pathlib, sys; pathlib.Path(os.environ["POINTSMAN_HANDOFF"], "detail_design.md").write_text({})'


def leaving(said: str, *arguments: str, **fields: object) -> Profile:
    """A command whose design is what a Python expression gives."""
    return replace(Profile("box", (sys.executable, "-I", "-c", LEAVE.format(said), *arguments)), **fields)  # type: ignore[arg-type]


async def design(profile: Profile, folder: Path) -> str:
    """What the command leaves, as the agent hands it in."""
    asked = lease(assignments.PURPOSE_DESIGN, design=work.DesignRequest(intent="greet"))
    job = Job(None, "box-designer", asked, Usage())  # type: ignore[arg-type]
    made = await CommandAgent(Workspace(folder / "worker", {}), profile).work(job)
    assert isinstance(made, handoff.DetailDesign)
    return made.design_md.text


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BOX_STATE", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


async def test_the_home_is_private_and_empty_even_if_the_profile_names_it(home: Path, tmp_path: Path) -> None:
    (home / "secret").write_text("mine")
    told = 'os.environ["HOME"] + str(os.listdir(os.environ["HOME"]))'
    for profile in (leaving(told), leaving(told, environment=("HOME",))):
        said = await design(profile, tmp_path)
        assert not said.startswith(str(home))
        assert said.endswith("[]")


async def test_what_a_command_writes_into_its_home_is_thrown_away(home: Path, tmp_path: Path) -> None:
    told = 'str(pathlib.Path(os.environ["HOME"], ".bashrc").write_text("x"))'
    assert await design(leaving(told), tmp_path) == "1"
    assert not (home / ".bashrc").exists()


async def test_settings_are_copied_in_and_changes_of_them_thrown_away(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "settings").write_text("as the user likes it")
    monkeypatch.setenv("BOX_STATE", str(tmp_path / "state"))
    path = 'pathlib.Path(os.environ["HOME"], ".box/settings")'
    told = f'{path}.read_text() + str({path}.write_text("changed"))'
    profile = leaving(told, settings=(".box/settings",), moved_by=("BOX_STATE=.box",))
    assert await design(profile, tmp_path) == "as the user likes it7"
    assert (tmp_path / "state" / "settings").read_text() == "as the user likes it"


@pytest.mark.skipif(available_level() < Level.LANDLOCK, reason="nothing is isolated here")
async def test_a_failed_command_says_at_which_isolation_and_that_something_was_refused(
    home: Path, tmp_path: Path
) -> None:
    told = 'str(pathlib.Path("/usr/written").write_text("x"))'
    with pytest.raises(GiveUp, match=f"isolation {available_level()}; the sandbox may have refused"):
        await design(leaving(told), tmp_path)


async def test_toolchains_of_the_users_home_are_found_in_the_private_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    (home / ".rustup").mkdir()
    (home / ".rustup" / "settings.toml").write_text("stable")
    told = 'pathlib.Path(os.environ["RUSTUP_HOME"], "settings.toml").read_text()'
    assert await design(leaving(told), tmp_path) == "stable"


@pytest.mark.parametrize("level", [level for level in levels_here() if level < Level.CONTAINER])
async def test_the_command_pointsman_works_inside_at_every_level(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAX_LEVEL_SETTING, str(level))
    told = "__import__('subprocess').run(['pointsman', 'evidence', '--help'], capture_output=True, text=True).stdout"
    assert "pointsman evidence" in await design(leaving(told), tmp_path)


async def test_words_are_filled_in_inside_an_argument_too_and_only_once(home: Path, tmp_path: Path) -> None:
    text = await design(leaving("' '.join(sys.argv[1:])", "--file={handoff}/x", "{prompt}", "{other}"), tmp_path)
    assert text.startswith("--file=/")
    assert "/handoff/x # Make a design" in text
    assert text.endswith("{other}")


@pytest.mark.parametrize(("confined", "chosen"), [(True, "off"), (False, "on")])
async def test_a_sandbox_of_its_own_is_kept_where_nothing_else_confines_it(
    confined: bool, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "available_level", lambda: Level.LANDLOCK if confined else Level.NONE)
    assert await design(leaving("sys.argv[1]", "{sandbox}", sandbox=("on", "off")), tmp_path) == chosen


async def test_a_handoff_folder_inside_the_working_tree_is_read_like_any_other(tmp_path: Path) -> None:
    told = 'str(pathlib.Path(os.environ["POINTSMAN_HANDOFF"]).parent == pathlib.Path.cwd())'
    assert await design(leaving(told, handoff_inside=True), tmp_path) == "True"


async def test_a_handoff_folder_that_was_made_to_lead_elsewhere_is_refused(tmp_path: Path) -> None:
    told = 'str(os.rename(".pointsman-handoff", "x") or os.symlink("x", ".pointsman-handoff") or 1)'
    with pytest.raises(GiveUp, match="is no folder any more"):
        await design(leaving(told, handoff_inside=True), tmp_path)


def test_further_variables_are_passed_on_to_a_known_agent_too() -> None:
    profile = profile_for("claude", "", ["HTTPS_PROXY"])
    assert profile is not None
    assert {"ANTHROPIC_API_KEY", "HTTPS_PROXY"} <= set(profile.environment)


async def test_the_attempt_that_a_command_reads_is_that_at_the_task_over_the_whole_run(tmp_path: Path) -> None:
    leave = (
        "import json, os, pathlib; "
        "said = {'decision': 'retry', 'rejected_claims': [os.environ['POINTSMAN_ATTEMPT']]}; "
        "pathlib.Path(os.environ['POINTSMAN_HANDOFF'], 'decision.json').write_text(json.dumps(said))"
    )
    task = handoff.MasterTask(run_id="r1", task_id="T1", attempt=4)
    asked = lease(assignments.PURPOSE_REVIEW, review=work.ReviewRequest(handoff=handoff.CoderHandoff(master_task=task)))
    job = Job(None, "box-reviewer", asked, Usage())  # type: ignore[arg-type]
    profile = Profile("box", (sys.executable, "-I", "-c", leave))
    made = await CommandAgent(Workspace(tmp_path / "worker", {}), profile).work(job)
    assert isinstance(made, handoff.ReviewDecision)
    assert list(made.rejected_claims) == ["4"]


async def test_work_that_is_on_no_task_counts_how_often_it_was_handed_out(home: Path, tmp_path: Path) -> None:
    assert await design(leaving('os.environ["POINTSMAN_ATTEMPT"]'), tmp_path) == "1"


@pytest.mark.skipif(available_level() < Level.LANDLOCK, reason="nothing is isolated here")
async def test_what_was_refused_is_named_with_its_path(home: Path, tmp_path: Path) -> None:
    told = 'str(pathlib.Path("/usr/written").write_text("x"))'
    with pytest.raises(GiveUp, match=r"may have refused what it tried \(.*'/usr/written'\)"):
        await design(leaving(told), tmp_path)


async def test_an_agent_has_the_ports_of_its_project(home: Path, tmp_path: Path) -> None:
    toml = "[workspace]\nports = 2\n"
    base = await repository(tmp_path / "user", {"pointsman.toml": toml})
    asked = lease(assignments.PURPOSE_DESIGN, design=work.DesignRequest(intent="greet"))
    asked.assignment.repository.id, asked.assignment.repository.base_commit = "repo", base
    job = Job(Shelf(base), "box-designer", asked, Usage())  # type: ignore[arg-type]
    told = 'str(int(os.environ["POINTSMAN_PORT_1"]) - int(os.environ["POINTSMAN_PORT_0"]))'
    made = await CommandAgent(Workspace(tmp_path / "worker", {"repo": tmp_path / "user"}), leaving(told)).work(job)
    assert isinstance(made, handoff.DetailDesign)
    assert made.design_md.text == "1"
