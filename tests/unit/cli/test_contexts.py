"""Contexts: each counts as a whole, below options and the environment, and is never shown to another server."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.config import app as config_app
from pointsman.cli.commands.context import app
from pointsman.cli.session.contexts import apply_context, contexts_file, origin_of


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_CONTEXTS", str(tmp_path / "own" / "contexts.json"))
    for name in ("POINTSMAN_SERVER", "POINTSMAN_DATA", "POINTSMAN_PROJECT", "POINTSMAN_CLIENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def said(*words: str) -> tuple[int, str]:
    """What `pointsman context` ends with and prints."""
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


def given(*arguments: str, command: str = "runs", **environment: str) -> dict[str, str]:
    """The variables of a command after its context was applied."""
    apply_context(command, arguments, environment)
    return environment


def two_contexts(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    assert (
        said("add", "work", "--server", "plane.example:1", "--project", "a", "--token", str(tmp_path / "token"))[0] == 0
    )
    code, printed = said("add", "home", "--data", str(tmp_path / "data"))
    assert (code, "in use is work" in printed) == (0, True), printed


def test_the_first_context_is_used_until_another_one_is_chosen(tmp_path: Path) -> None:
    assert given() == {}
    assert "no contexts" in said("list")[1]
    two_contexts(tmp_path)
    assert given() == {
        "POINTSMAN_SERVER": "plane.example:1", "POINTSMAN_PROJECT": "a", "POINTSMAN_CLIENT_TOKEN": str(tmp_path / "token"),
    }  # fmt: skip
    assert "secret" not in contexts_file().read_text()
    assert contexts_file().parent.stat().st_mode & 0o077 == 0
    assert said("use", "home")[0] == 0
    assert given()["POINTSMAN_DATA"] == str(tmp_path / "data")
    assert given(POINTSMAN_CONTEXT="work")["POINTSMAN_PROJECT"] == "a"
    assert [line[:6] for line in said("list")[1].splitlines()] == ["* home", "  work"]
    assert json.loads(said("list", "--json")[1])["current"] == "home"
    assert said("remove", "home")[1] == "removed home; no context is in use now\n"
    assert given() == {}


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--server", "other.example:1"), {}),
        (("--server=other.example:1",), {}),
        ((), {"POINTSMAN_SERVER": "other.example:1"}),
        ((), {"POINTSMAN_DATA": "/elsewhere"}),
    ],
)
def test_nothing_of_a_context_is_used_beside_another_control_plane(
    arguments: tuple[str, ...], environment: dict[str, str], tmp_path: Path
) -> None:
    two_contexts(tmp_path)
    assert given(*arguments, **environment) == environment


def test_config_says_what_a_context_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_contexts(tmp_path)
    for name, value in given().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POINTSMAN_PROJECT", "b")
    monkeypatch.chdir(tmp_path)
    rows = {row["name"]: row for row in json.loads(CliRunner().invoke(config_app, ["--json"]).output)}
    assert (rows["server"]["value"], rows["server"]["origin"]) == ("plane.example:1", "context work")
    assert (rows["project"]["value"], rows["project"]["origin"]) == ("b", "environment POINTSMAN_PROJECT")
    assert (rows["credential"]["value"], rows["credential"]["origin"]) == (str(tmp_path / "token"), "context work")
    assert origin_of("POINTSMAN_DATABASE_URL", {}) == ""


def test_what_cannot_be_a_context_is_refused_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, part in (
        (("add", "x"), "name one"),
        (("add", "x", "--server", "a:1", "--data", str(tmp_path)), "name one"),
        (("add", "none", "--server", "a:1"), "cannot name a context"),
        (("add", "a b", "--server", "a:1"), "cannot name a context"),
        (("use", "x"), "there is no context 'x'"),
        (("remove", "x"), "there is no context 'x'"),
    ):
        code, printed = said(*words)
        assert (code, part in printed) == (2, True), printed
    with pytest.raises(SystemExit, match="2"):
        given(POINTSMAN_CONTEXT="gone")
    assert "there is no context 'gone' (known: none yet)" in capsys.readouterr().err
    contexts_file().parent.mkdir(exist_ok=True)
    contexts_file().write_text('{"current": "", "contexts": {"x": {"shell": "rm"}}}')
    with pytest.raises(SystemExit, match="2"):
        given()
    assert "repair it, or remove it" in capsys.readouterr().err
    assert given(command="context") == {}
