"""The `pointsman` command: runs the command that the first argument names, and maps failures to exit codes."""

import sys

from pointsman.cli.commands import COMMANDS
from pointsman.cli.exit_codes import EXIT_FAILED, EXIT_UNREACHABLE, EXIT_USAGE


def main() -> None:
    """Runs the command that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("--help", "-h", "help"):
        print(_help())
    elif name == "--version":
        from importlib.metadata import version

        print(version("pointsman"))
    elif name in COMMANDS:
        _run(name)
    else:
        print(f"pointsman: unknown command '{name}'\n\n{_help()}", file=sys.stderr)
        sys.exit(EXIT_USAGE)


def _run(name: str) -> None:
    from pointsman.client.errors import CallFailed, Unavailable
    from pointsman.services.chassis.core.errors import Code, Refusal

    app = COMMANDS[name].load()
    app.pretty_exceptions_enable = False
    try:
        app(sys.argv[2:], prog_name=f"pointsman {name}")
    except Refusal as refusal:
        print(f"pointsman: {refusal.message}", file=sys.stderr)
        sys.exit(EXIT_USAGE if refusal.code is Code.INVALID_ARGUMENT else EXIT_FAILED)
    except CallFailed as failure:
        print(f"pointsman: {failure}", file=sys.stderr)
        sys.exit(EXIT_UNREACHABLE if isinstance(failure, Unavailable) else EXIT_FAILED)
    except OSError as error:
        if error.filename is None:
            raise
        print(f"pointsman: {error.filename}: {str(error.strerror).lower()}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


def _help() -> str:
    lines = ["usage: pointsman COMMAND [OPTIONS]", ""]
    lines += [f"  {name:<10} {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "`pointsman COMMAND --help` says more. Every command takes --json."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
