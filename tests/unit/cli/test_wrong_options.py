"""Options that cannot be followed: each is named in a sentence, with exit code 2 and no stack trace."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands import COMMANDS

runner = CliRunner()


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("run", ("",), "the task is empty: say what is wanted"),
        ("run", (" \n",), "the task is empty: say what is wanted"),
        ("run", ("fix", "--command", "a 'b"), "--command cannot be read"),
        ("agent", ("--command", "a 'b"), "--command cannot be read"),
        ("run", ("fix", "--repo", "{empty}"), "--repo"),
        ("run", ("fix", "--repo", "{empty}/nope"), "--repo"),
        ("run", ("fix", "--budget", "tokens=99999999999999999999"), "--budget"),
        ("run", ("fix", "--budget", "minutes=²"), "--budget"),
        ("run", ("fix", "--barrier-timeout", "0.5"), "--barrier-timeout"),
        ("run", ("fix", "--barrier-timeout", "nan"), "--barrier-timeout"),
        ("pipeline", ("clean-up", "--days", "1e300"), "--days"),
        ("pipeline", ("clean-up", "--days", "nan"), "--days"),
        ("pipeline", ("start", "fix", "--barrier-timeout", "inf"), "--barrier-timeout"),
        ("pipeline", ("parse", "{empty}/nope"), "cannot read"),
        ("route", ("stats", "--project", "é"), "--project"),
        ("runs", ("--project", "é"), "--project"),
        ("runs", ("--limit", "-1"), "--limit"),
        ("route", ("eval", "/dev/null"), "no message to measure"),
        ("schedule", ("list", "all"), "say `schedule list`"),
        ("schedule", ("pause",), "say `schedule pause ID`"),
        ("schedule", ("update", "the", "lock"), "the task is one text in quotes; or say list, or show, pause"),
        ("schedule", ("fix",), 'say when: pointsman schedule "…" --cron "0 3 * * *"'),
        ("schedule", (" ", "--cron", "0 3 * * *"), "the task is empty: say what is wanted"),
        ("schedule", ("fix", "--cron", "0 3 * * *", "--catch-up", "40d"), "--catch-up takes 1m to 31d, not '40d'"),
        ("schedule", ("fix", "--cron", "0 3 * * *", "--catch-up", "soon"), "--catch-up takes a number with m, h, d"),
        ("schedule", ("fix", "--cron", "0 3 * * *", "--missed", "none"), "'none' is not one of 'skip', 'one', 'all'"),
    ],
)
def test_an_option_that_cannot_be_followed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    app = COMMANDS[command].load()
    result = runner.invoke(app, [argument.format(empty=tmp_path) for argument in arguments])
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert isinstance(result.exception, SystemExit)
