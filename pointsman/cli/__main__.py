"""The `pointsman` command: runs the command that the first argument names, and maps failures to exit codes."""

import difflib
import os
import sys
from collections.abc import Sequence

from pointsman.cli.commands import COMMANDS, Group
from pointsman.cli.exit_codes import EXIT_FAILED, EXIT_MEANINGS, EXIT_UNREACHABLE, EXIT_USAGE
from pointsman.cli.render.terminal import protect_terminal
from pointsman.cli.session.contexts import NAMED, apply_context

HELP = ("--help", "-h")
CONTEXT = "--context"


def main() -> None:
    """Runs the command that the first argument names."""
    name, *arguments = _with_context(sys.argv[1:]) or ["--help"]
    if name == "help" and arguments:
        name, arguments = arguments[0], [*arguments[1:], "--help"]
    if name in (*HELP, "help"):
        print(_help())
    elif name == "--version":
        from importlib.metadata import version

        print(version("pointsman"))
    elif name in COMMANDS:
        _run(name, arguments)
    else:
        print(_unknown(name), file=sys.stderr)
        sys.exit(EXIT_USAGE)


def _with_context(words: Sequence[str]) -> list[str]:
    """Takes `--context NAME` from before the command."""
    first, *rest = words or [""]
    given, has_value, name = first.partition("=")
    if given != CONTEXT:
        return list(words)
    if not has_value:
        name, rest = (rest or [""])[0], rest[1:]
    if not name:
        print("pointsman: --context needs a name; `pointsman context list` lists them", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    os.environ[NAMED] = name
    return list(rest)


def _run(name: str, arguments: Sequence[str]) -> None:
    from pointsman.client.errors import CallFailed, Unavailable
    from pointsman.credentials.folder import UnusableCredentials
    from pointsman.services.chassis.core.errors import Code, Refusal

    protect_terminal()
    apply_context(name, arguments, os.environ)
    app = COMMANDS[name].load()
    app.pretty_exceptions_enable = False
    try:
        app(
            ["--help" if word == "-h" else word for word in arguments[:1]] + list(arguments[1:]),
            prog_name=f"pointsman {name}",
        )
    except Refusal as refusal:
        print(f"pointsman: {refusal.message}", file=sys.stderr)
        sys.exit(EXIT_USAGE if refusal.code is Code.INVALID_ARGUMENT else EXIT_FAILED)
    except UnusableCredentials as unusable:
        print(f"pointsman: {unusable}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
    except CallFailed as failure:
        print(f"pointsman: {failure}", file=sys.stderr)
        sys.exit(EXIT_UNREACHABLE if isinstance(failure, Unavailable) else EXIT_FAILED)
    except OSError as error:
        if error.errno is None:  # our own words, such as a port that another process has
            print(f"pointsman: {error}", file=sys.stderr)
            sys.exit(EXIT_FAILED)
        if error.filename is None:
            raise
        print(f"pointsman: {error.filename}: {str(error.strerror).lower()}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
    finally:
        if list(arguments) in (["--help"], ["-h"]):
            print("\n".join(("Examples:", *(f"  pointsman {line}" for line in COMMANDS[name].examples))))


def _unknown(name: str) -> str:
    """Names the nearest commands, else the whole help."""
    near = difflib.get_close_matches(name, COMMANDS, 3, 0.6)
    if not near:
        return f"pointsman: unknown command '{name}'\n\n{_help()}"
    return f"pointsman: unknown command '{name}'; did you mean {' or '.join(f'`pointsman {one}`' for one in near)}?"


def _help() -> str:
    lines = ["usage: pointsman [--context NAME] COMMAND [OPTIONS]"]
    for group in Group:
        lines += ["", group]
        lines += [f"  {name:<10} {command.summary}" for name, command in COMMANDS.items() if command.group is group]
    codes = ", ".join(f"{code} {meaning}" for code, meaning in EXIT_MEANINGS.items())
    lines += [
        "",
        "`pointsman help COMMAND` says more, with examples. Every command takes --json.",
        "RUN is a run's id, the beginning of one, or `last`.",
        f"Exit codes: {codes}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
