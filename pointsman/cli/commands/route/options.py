"""The options that the commands of `pointsman route` share, and how they call the router."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from pointsman.cli.exit_codes import EXIT_FAILED, EXIT_USAGE
from pointsman.cli.options.usage import ProjectOption
from pointsman.cli.session.router_client import RouterCalls, StoreUnusable, router_calls

Answer = TypeVar("Answer")
AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]
Rules = Annotated[Path | None, typer.Option(help="A JSON file with rules of your own, added to the rule set.")]
Server = Annotated[str, typer.Option(help="Address of the control plane; default: the one that runs, else the store.")]
Project = ProjectOption
DecisionId = Annotated[
    str, typer.Argument(metavar="DECISION", help="The decision's id, as `pointsman route` prints it.")
]


def ask(server: str, project: str, question: Callable[[RouterCalls], Awaitable[Answer]]) -> Answer:
    """Calls the router; a store that cannot be used ends the command."""

    async def run() -> Answer:
        async with router_calls(server, project) as calls:
            return await question(calls)

    try:
        return asyncio.run(run())
    except StoreUnusable as error:
        print(f"pointsman: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_USAGE if error.is_wrong_setting else EXIT_FAILED) from None


def word(enum: Any, number: int) -> str:
    """The short name of an enum value: PLANNING_TRIGGER_BULK is bulk."""
    names = enum.keys()
    prefix = names[0].removesuffix("UNSPECIFIED")
    return str(enum.Name(number)).removeprefix(prefix).lower()


def choice(enum: Any, given: str, option: str) -> Any:
    """The enum value of a typed word, with - or _; an unknown word is a usage error that lists the known ones."""
    known = {word(enum, number): number for number in enum.values() if number}
    number = known.get(given.strip().lower().replace("-", "_"))
    if number is None:
        names = ", ".join(name.replace("_", "-") for name in known)
        raise typer.BadParameter(f"there is no '{given}'; known are {names}", param_hint=option)
    return number


def print_json(shown: object) -> None:
    """Prints a value as JSON."""
    print(json.dumps(shown, ensure_ascii=False, indent=2))


def usage(message: str) -> typer.Exit:
    """A usage error of one line, to be raised by the caller."""
    print(f"pointsman: {message}", file=sys.stderr)
    return typer.Exit(EXIT_USAGE)


def book_with(rules: Path | None) -> Any:
    """The rule set, with the rules of a file where one is named."""
    from pointsman.services.router.domain.rule_document import RuleProblem
    from pointsman.services.router.rules import rule_book_with, standard_rule_book

    if rules is None:
        return standard_rule_book()
    try:
        return rule_book_with(own_rules(rules))
    except RuleProblem as problem:
        raise usage(f"{rules}: {problem}") from None


def own_rules(file: Path) -> Any:
    """The rules of a file; an invalid one is a usage error."""
    from pointsman.services.router.rules import RuleFileRefused, load_own_rules

    try:
        return load_own_rules(file)
    except RuleFileRefused as refused:
        raise usage(str(refused)) from None
