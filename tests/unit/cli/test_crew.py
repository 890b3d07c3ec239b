"""Who plays which role of a run: options, then the project file, and what follows from a role that nobody plays."""

from typing import Any

import pytest

from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.cli.session.crew import Crew, CrewOptions, crew_of
from pointsman.project import Crew as ProjectCrew
from pointsman.project import CrewMember

FILE = ProjectCrew(
    planner=CrewMember("claude"),
    coder=CrewMember("gemini", 3),
    reviewer=CrewMember("codex"),
    critic=CrewMember("aider"),
)
NOTHING = ProjectCrew()


def crew(project: ProjectCrew = NOTHING, **options: Any) -> Crew:
    return crew_of(CrewOptions(**options), project)


def test_one_agent_plays_planner_researcher_two_coders_and_reviewer() -> None:
    found = crew(agent="claude")
    assert dict(found.members) == dict.fromkeys(("planner", "researcher", "coder", "reviewer"), "claude")
    assert (found.parallel, found.reserved) == (2, True)
    assert list(found.notes()) == ["crew: planner claude, researcher claude, coder claude × 2, reviewer claude"]


def test_solo_is_one_coder_alone_whatever_the_project_file_says() -> None:
    assert dict(crew(agent="claude", solo=True).members) == {"coder": "claude"}
    found = crew(FILE, solo=True)
    assert (dict(found.members), found.parallel) == ({"coder": "gemini"}, 1)
    assert list(found.notes()) == ["crew: coder gemini"]


def test_a_command_of_ones_own_is_the_coder_alone_unless_roles_are_named_too() -> None:
    assert dict(crew(command="my-agent -x").members) == {"coder": "cmd:my-agent -x"}
    found = crew(command="my-agent -x", roles={"planner": "cmd:my-planner", "reviewer": "codex"})
    assert list(found.members) == ["planner", "coder", "reviewer"]
    assert next(found.notes()) == "crew: planner my-planner, coder my-agent × 2, reviewer codex"


def test_a_script_is_named_and_not_its_interpreter() -> None:
    found = crew(command="/usr/bin/python3.11 -I tools/agent.py --fast", roles={"reviewer": "cmd:sh -c true"})
    assert next(found.notes()) == "crew: coder agent.py, reviewer sh"


def test_the_project_file_names_who_the_options_do_not() -> None:
    found = crew(FILE)
    assert dict(found.members) == {"planner": "claude", "coder": "gemini", "reviewer": "codex", "critic": "aider"}
    assert found.parallel == 3
    found = crew(FILE, roles={"reviewer": "opencode"}, parallel=5)
    assert (found.members["reviewer"], found.members["coder"], found.parallel) == ("opencode", "gemini", 5)
    found = crew(FILE, agent="claude")
    assert (found.members["coder"], found.members["reviewer"], found.members["critic"]) == ("claude", "claude", "aider")


def test_a_role_that_nobody_plays_is_said_with_what_follows() -> None:
    assert list(crew(roles={"coder": "claude"}).notes())[1:] == [
        "no planner: the work is one task for one coder (--planner names one)",
        "no reviewer: what no command proves is for you to accept (--reviewer names one)",
    ]
    said = list(crew(roles={"coder": "claude", "planner": "claude"}).notes())[1:]
    assert said[0].startswith("no researcher: what the plan asks is answered by a survey")


def test_coders_are_one_where_nobody_makes_a_plan_of_several_tasks() -> None:
    assert crew(roles={"coder": "claude"}, parallel=4).parallel == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"agent": "claude", "command": "x"}, "--agent and --command both name the agent"),
        ({"command": "x", "roles": {"coder": "claude"}}, "--coder and --command both name the coder"),
        ({"agent": "claude", "solo": True, "parallel": 2}, "--solo is one coder on one task"),
        ({"solo": True, "roles": {"reviewer": "codex"}}, "--solo is one coder on one task"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        crew(**options)
    assert words in capsys.readouterr().err


def test_the_options_of_a_crew_make_the_same_crew_again() -> None:
    first = crew(FILE, agent="claude", parallel=3, share=True, env=("KEY",))
    words = list(first.options())
    assert words[:8] == ["--planner", "claude", "--researcher", "claude", "--coder", "claude", "--reviewer", "claude"]
    assert words[8:] == ["--parallel", "3", "--share", "--env", "KEY"]


def test_a_run_is_told_who_comes_along_and_that_its_work_is_theirs() -> None:
    message = crew(agent="claude", parallel=3).message()
    assert set(message.capabilities) == {
        assignments.CAPABILITY_PLAN,
        assignments.CAPABILITY_RESEARCH,
        assignments.CAPABILITY_CODE,
        assignments.CAPABILITY_REVIEW,
        assignments.CAPABILITY_VERIFY,
        assignments.CAPABILITY_SURVEY,
    }
    assert (message.reserved, message.parallel) == (True, 3)
    assert not crew(agent="claude", share=True).message().reserved
    assert not crew().message().ListFields()


def test_a_crew_without_a_coder_leaves_the_work_to_everybody() -> None:
    assert not crew(roles={"reviewer": "codex"}).message().reserved
