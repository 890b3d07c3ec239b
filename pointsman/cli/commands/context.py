"""`pointsman context`: named control planes for people who use several."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.usage import fail_usage, project_name
from pointsman.cli.session.contexts import Contexts, contexts_file, read_contexts, write_contexts

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Name control planes, and choose the one to use. `pointsman --context NAME COMMAND` uses one once.",
)
NONE = "none"
AsJson = Annotated[bool, typer.Option("--json", help="The contexts as JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the context.")]


@app.command("list")
def list_contexts(*, as_json: AsJson = False) -> None:
    """List contexts; a star marks the one in use."""
    found = read_contexts()
    if as_json:
        _print_json(found)
        return
    if not found.contexts:
        print("no contexts: commands use the data directory of this machine; `pointsman context add NAME` makes one")
        return
    width = max(map(len, found.contexts))
    for name, fields in sorted(found.contexts.items()):
        print(f"{'*' if name == found.current else ' '} {name:<{width}}  {_shown(fields)}")


@app.command()
def add(  # noqa: PLR0913 - one parameter per option
    *,
    name: Name,
    server: Annotated[str, typer.Option(help="Address of the control plane, as host:port.")] = "",
    data: Annotated[
        Path | None, typer.Option(file_okay=False, resolve_path=True, help="Or a data directory of this machine.")
    ] = None,
    project: Annotated[str, typer.Option(help="The project to work in.", callback=project_name)] = "local",
    token: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, resolve_path=True, help="File of a bearer token; the token stays there."
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, resolve_path=True, help="PEM file of the server's authority."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, resolve_path=True, help="PEM file of your certificate.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, resolve_path=True, help="PEM file of its private key.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a context, or replace the one of that name; the first one added is used."""
    if bool(server) == bool(data):
        fail_usage("a context is a control plane by its address (--server) or by its data directory (--data): name one")
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name == NONE:
        fail_usage(f"'{name}' cannot name a context: take letters, digits, '-', '_' and '.', and not '{NONE}'")
    places = {"data": data, "token": token, "authority": authority, "certificate": certificate, "key": key}
    given = {"server": server, "project": project, **{field: str(path) for field, path in places.items() if path}}
    found = read_contexts()
    fields = {field: value for field, value in given.items() if value}
    made = Contexts({**found.contexts, name: fields}, found.current or name)
    write_contexts(made)
    if as_json:
        _print_json(made)
        return
    print(f"added {name}: {_shown(fields)}")
    if (found.current or name) != name:
        print(f"in use is {found.current}; to change: pointsman context use {name}")


@app.command()
def use(
    *, name: Annotated[str, typer.Argument(metavar="NAME", help=f"The context, or `{NONE}`.")], as_json: AsJson = False
) -> None:
    """Use a context from now on; `none` goes back to the data directory of this machine."""
    found = read_contexts()
    if name != NONE:
        _require(found, name)
    made = Contexts(found.contexts, "" if name == NONE else name)
    write_contexts(made)
    if as_json:
        _print_json(made)
        return
    print(
        "in use: "
        + ("the data directory of this machine" if name == NONE else f"{name}, {_shown(found.contexts[name])}")
    )


@app.command()
def remove(*, name: Name, as_json: AsJson = False) -> None:
    """Remove a context; its files stay."""
    found = read_contexts()
    _require(found, name)
    left = {one: fields for one, fields in found.contexts.items() if one != name}
    made = Contexts(left, "" if found.current == name else found.current)
    write_contexts(made)
    if as_json:
        _print_json(made)
        return
    print(f"removed {name}" + ("; no context is in use now" if found.current == name else ""))


def _print_json(found: Contexts) -> None:
    print(json.dumps({"current": found.current, "contexts": dict(found.contexts)}, indent=2, ensure_ascii=False))


def _require(found: Contexts, name: str) -> None:
    if name not in found.contexts:
        known = ", ".join(sorted(found.contexts)) or f"none; {contexts_file()} is empty"
        fail_usage(f"there is no context '{name}'; known: {known}")


def _shown(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{field} {value}" for field, value in fields.items())
