"""Command lines: split as a shell would, without a shell."""

import shlex

import pytest

from pointsman.project import InvalidCommand, split_command


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("uv run pytest -q", ("uv", "run", "pytest", "-q")),
        ("pytest -k 'a|b && c'", ("pytest", "-k", "a|b && c")),
        ('pytest -k "a > b"', ("pytest", "-k", "a > b")),
        ("sh -c 'cd web && npm test > $OUT'", ("sh", "-c", "cd web && npm test > $OUT")),
        ("echo \\$HOME a\\;b", ("echo", "$HOME", "a;b")),
        ("go test ./...", ("go", "test", "./...")),
    ],
)
def test_quotes_and_escapes_mean_what_they_mean_in_a_shell(text: str, arguments: tuple[str, ...]) -> None:
    assert split_command(text).arguments == arguments


@pytest.mark.parametrize(
    "text",
    [
        "make && make test",
        "a | b",
        "a > out",
        "a < in",
        "a; b",
        "(a)",
        "a &",
        "echo $HOME",
        "echo `id`",
        'x "$(id)"',
        'x "\\$HOME"',
        "a\nb",
    ],
)
def test_syntax_of_a_shell_is_refused_with_the_command_to_write(text: str) -> None:
    with pytest.raises(InvalidCommand, match="only a shell understands") as refused:
        split_command(text)
    _, _, advice = str(refused.value).partition("write ")
    assert split_command(advice).arguments == ("sh", "-c", text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("pytest 'a", "no closing quotation"),
        ("CI=1 pytest", "write env CI=1 pytest"),
        ("cd web", f"write {shlex.join(('sh', '-c', 'cd web'))}"),
        ("a\0b", "NUL"),
    ],
)
def test_what_is_no_command_is_refused_with_its_reason(text: str, words: str) -> None:
    with pytest.raises(InvalidCommand) as refused:
        split_command(text)
    assert words in str(refused.value)
