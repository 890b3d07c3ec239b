"""Trivial commands on the client: which are on the closed list, and with which arguments."""

from pathlib import Path

import pytest

from pointsman.cli.session.fast_path import LOOPBACK, MAX_PINGS, argv_of, execute


@pytest.mark.parametrize(
    ("message", "argv"),
    [
        ("pwd", ["pwd"]),
        (" pwd -P ", ["pwd", "-P"]),
        ("Date -u", ["date", "-u"]),
        ("date '+%Y %m'", ["date", "+%Y %m"]),
        ("whoami", ["whoami"]),
        ("echo", ["echo"]),
        ("echo Hi  there", ["echo", "Hi", "there"]),
        ("echo -n 'two  words'", ["echo", "-n", "two  words"]),
        ("echo $HOME *", ["echo", "$HOME", "*"]),
        ("ping", ["ping", "-c", "4", LOOPBACK]),
        ("ping example.com", ["ping", "-c", "4", "example.com"]),
        ("ping -c 2 localhost", ["ping", "-c", "2", "localhost"]),
        ("ping -6 fe80::1", ["ping", "-6", "-c", "4", "fe80::1"]),
        ("ping -4 db1 -c 99999999999", ["ping", "-4", "-c", str(MAX_PINGS), "db1"]),
    ],
)
def test_a_trivial_command_is_executed_with_its_arguments_as_they_are(message: str, argv: list[str]) -> None:
    assert argv_of(message) == argv


@pytest.mark.parametrize(
    "message",
    [
        "",
        "ls",
        "git status",
        "echo 'open",
        "whoami --help",
        "pwd /etc",
        "date --set=2020-01-01",
        "date -s tomorrow",
        "date --file=/etc/passwd",
        "ping -f localhost",
        "ping -i 0 localhost",
        "ping -c 0 localhost",
        "ping -c",
        "ping one.example two.example",
        "ping -s 65000 localhost",
    ],
)
def test_what_is_not_on_the_closed_list_is_not_executed(message: str) -> None:
    assert argv_of(message) is None


def test_a_command_is_run_without_a_shell(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["echo", "$HOME", "`id`", "a;b"]).exit_code == 0
    assert capfd.readouterr().out == "$HOME `id` a;b\n"
    assert execute(["echo", "hi"], capture=True).output == "hi\n"


def test_a_command_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert execute(["ping", "-c", "1", LOOPBACK]).exit_code == 1
    assert "'ping': it is not installed here" in capsys.readouterr().err
