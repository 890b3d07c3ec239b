"""The reader of pointsman.toml: typed values, or every problem at once with its line and the way out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.project import (
    Budget,
    CrewMember,
    InvalidProjectFile,
    ProjectFile,
    read_include_file,
    read_project_file,
)
from pointsman.project.keys import SECTIONS
from pointsman.project.problems import Problems

WHOLE = b"""\
[workspace]
setup   = ["uv sync --frozen"]
include = [".env.test"]
cache   = ["~/.cache/uv"]
read    = ["/opt/data"]
ports   = 4
services = { postgres = true, redis = "redis-server --port {port}" }
env     = { TZ = "UTC" }
timeout = 120
[proof]
verify  = ["uv run pytest -q"]
protect = ["golden/**"]
network = true
repeat  = 3
timeout = 60
[crew]
planner  = "claude"
coder    = { agent = "claude", parallel = 3, best_of = 2 }
reviewer = "codex"
fallback = ["codex", "gemini"]
[budget]
cost_usd = 5
minutes  = 60
[deliver]
push = "origin"
[notify]
slack = "https://hooks.example.org/x"
quiet = "22:00-07:00"
escalate = "https://hooks.example.org/y"
escalate_minutes = 30
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(InvalidProjectFile) as refused:
        read_project_file(text.encode())
    return str(refused.value).splitlines()


def test_a_whole_file_becomes_typed_values() -> None:
    project = read_project_file(WHOLE)
    assert [command.arguments for command in project.workspace.setup] == [("uv", "sync", "--frozen")]
    assert (project.workspace.include, project.workspace.cache, project.workspace.read) == (
        (".env.test",),
        ("~/.cache/uv",),
        ("/opt/data",),
    )
    assert (project.workspace.ports, project.workspace.timeout, dict(project.workspace.env)) == (4, 120, {"TZ": "UTC"})
    assert project.workspace.services["postgres"] is None
    redis = project.workspace.services["redis"]
    assert redis is not None
    assert redis.arguments == ("redis-server", "--port", "{port}")
    assert [command.text for command in project.proof.verify] == ["uv run pytest -q"]
    assert (project.proof.protect, project.proof.network, project.proof.repeat, project.proof.timeout) == (
        ("golden/**",),
        True,
        3,
        60,
    )
    assert project.crew.planner == CrewMember("claude")
    assert project.crew.coder == CrewMember("claude", 3, 2)
    assert project.crew.fallback == ("codex", "gemini")
    assert project.budget == Budget(5.0, 60)


def test_an_empty_file_is_all_defaults() -> None:
    assert read_project_file(b"") == ProjectFile()
    assert read_project_file("\ufeff# only a comment\n".encode()) == ProjectFile()


def test_every_problem_is_told_at_once_with_its_line_and_the_way_out() -> None:
    assert problems_of(
        "[workspace]\n"
        'set_up = ["uv sync"]\n'
        'setup = [\n  "make deps",\n  "npm ci && npm start",\n]\n'
        'ports = "four"\n'
        "[prof]\n"
        "[proof]\n"
        "repeat = 0\n"
        'include = ["x"]\n'
    ) == [
        "pointsman.toml:2: workspace.set_up: there is no such key; did you mean 'setup'?",
        "pointsman.toml:5: workspace.setup[1]: has `&`, which only a shell understands; write sh -c 'npm ci && npm start'",
        "pointsman.toml:7: workspace.ports: takes a whole number from 0 to 64, not text",
        "pointsman.toml:8: prof: there is no section [prof]; did you mean 'proof'?",
        "pointsman.toml:10: proof.repeat: takes a whole number from 1 to 20, not 0",
        "pointsman.toml:11: proof.include: there is no such key; it belongs below [workspace]",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[proof", "pointsman.toml:1: is no TOML: Expected ']' at the end of a table declaration"),
        ('verify = ["x"]', "pointsman.toml:1: verify: stands in no section; put it below [proof]"),
        ("proof = 1", "pointsman.toml:1: proof: is a section; write [proof] on a line of its own"),
        ("colour = 1", "pointsman.toml:1: colour: stands in no section; sections are workspace, proof, crew, budget,"),
        ('[proof]\nverify = "pytest"', "pointsman.toml:2: proof.verify: takes a list of commands, not text"),
        ("[proof]\nverify = [1]", "pointsman.toml:2: proof.verify[0]: takes text, not a number"),
        ("[proof]\nnetwork = 1", "pointsman.toml:2: proof.network: takes true or false, not a number"),
        ("[proof]\nrepeat = true", "pointsman.toml:2: proof.repeat: takes a whole number from 1 to 20, not true or"),
        ("[proof]\ntimeout = 1979-05-27", "pointsman.toml:2: proof.timeout: takes a whole number from 1 to 86400, not"),
        ('[workspace]\ninclude = ["../x"]', "pointsman.toml:2: workspace.include[0]: takes a path below the top"),
        ('[workspace]\ninclude = [".git/config"]', "pointsman.toml:2: workspace.include[0]: takes a path below"),
        ('[workspace]\nread = ["data"]', "pointsman.toml:2: workspace.read[0]: takes a folder by its whole path"),
        ('[workspace]\nread = ["/"]', "pointsman.toml:2: workspace.read[0]: takes a folder by its whole path"),
        ('[workspace]\ncache = ["~/../x"]', "pointsman.toml:2: workspace.cache[0]: takes a folder by its whole path"),
        ("[workspace.env]\nCI = true", 'pointsman.toml:1: workspace.env.CI: takes text; write CI = "true"'),
        ('[workspace.env]\nPOINTSMAN_X = "1"', "pointsman.toml:1: workspace.env.POINTSMAN_X: is no name of a variable"),
        ("[workspace]\nservices.mysql = true", "pointsman.toml:2: workspace.services.mysql: is not known by its name"),
        (
            '[workspace]\nservices.redis = "redis-server --port 6379"',
            "pointsman.toml:2: workspace.services.redis: names no {port}; write where its port goes",
        ),
        ('[workspace]\nservices.Redis = "x {port}"', "pointsman.toml:2: workspace.services.Redis: is no name of a"),
        ("[workspace]\nservices = true", "pointsman.toml:2: workspace.services: takes a table such as"),
        (
            '[crew]\ncoder = { agnt = "x" }',
            "pointsman.toml:2: crew.coder.agnt: is no key of a crew member; did you mean",
        ),
        ("[crew]\ncoder = { parallel = 3 }", "pointsman.toml:2: crew.coder: names no agent; add agent = …"),
        ("[budget]\ncost_usd = -1", "pointsman.toml:2: budget.cost_usd: takes a number above 0"),
        ("[budget]\ncost_usd = nan", "pointsman.toml:2: budget.cost_usd: takes a number above 0"),
    ],
)
def test_a_problem_names_its_key_and_what_to_write(text: str, problem: str) -> None:
    assert any(line.startswith(problem) for line in problems_of(text)), problems_of(text)


def test_a_file_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidProjectFile, match=r"pointsman\.toml:2: is not UTF-8 text"):
        read_project_file(b"# a\n\xff")
    with pytest.raises(InvalidProjectFile, match="larger than"):
        read_project_file(b"#" * 1_000_000)
    with pytest.raises(InvalidProjectFile, match="is no TOML"):
        read_project_file(b"x = " + b"[" * 50_000)


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([f"{s}.{k}" for s, keys in SECTIONS.items() for k in keys]), VALUE)
def test_no_value_of_any_type_breaks_the_reader(where: str, value: object) -> None:
    section, _, key = where.partition(".")
    problems = Problems("")
    read = SECTIONS[section][key].read(problems, where, value)
    assert read is not None or problems.found


def test_notices_go_to_one_receiver_and_an_escalation_names_both_its_keys() -> None:
    two = problems_of('[notify]\nslack = "https://a"\nwebhook = "https://b"')
    assert two == ["pointsman.toml:2: notify.slack: stands beside webhook; name one receiver"]
    assert "escalate and escalate_minutes go together" in problems_of("[notify]\nescalate_minutes = 5")[0]
    assert "such as 22:00-07:00" in problems_of('[notify]\nquiet = "night"')[0]
    assert "begins with http" in problems_of('[notify]\nslack = "hooks.example.org"')[0]
    assert "there is no such key" in problems_of('[notify]\ncommand = "notify-send"')[0], "a file runs nothing"


def test_every_key_says_what_it_is_for() -> None:
    assert all(key.about.endswith(".") for keys in SECTIONS.values() for key in keys.values())


def test_a_worktreeinclude_file_has_a_pattern_a_line() -> None:
    assert read_include_file(b"# secrets for tests\n\n.env.test\n/config/*.local.json\n") == (
        ".env.test",
        "config/*.local.json",
    )
    with pytest.raises(InvalidProjectFile, match=r"\.worktreeinclude:2: takes a path below the top"):
        read_include_file(b"ok\n../../etc/passwd\n")
