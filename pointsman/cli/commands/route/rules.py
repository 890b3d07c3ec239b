"""`pointsman route eval`, `explain` and `prompt`: measure the rules, explain a decision, and print them."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman.cli.commands.route.options import AsJson, Rules, book_with, usage


def evaluate(
    file: Annotated[Path, typer.Argument(help="JSON lines: text and any of mode, confidence, fast_path, debate, …")],
    rules: Rules = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Print false positives against false negatives at each threshold.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the rules on labelled messages: accuracy, errors each way, agreement, and every wrong item."""
    from pointsman.services.router.domain import evaluation

    items = list(_items(file))
    if not items:
        raise usage(f'{file}: there is no message to measure; a line is {{"text": …, "mode": …}}')
    result = evaluation.evaluate(book_with(rules), items)
    if as_json:
        shown = {"curve": result.curve()} if curve else result.as_dict()
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        print("\n".join(evaluation.curve_lines(result) if curve else evaluation.summary(result)))


def explain(
    message: Annotated[str, typer.Argument(help="The message; - is standard input.")],
    rules: Rules = None,
    as_json: AsJson = False,
) -> None:
    """Say which sentence decides a message, by which words, and what would have changed the decision."""
    from pointsman.services.router.domain import explanation
    from pointsman.services.router.domain.evaluation import as_labels

    content = sys.stdin.buffer.read().decode(errors="replace") if message == "-" else message
    found = explanation.explain(book_with(rules), content)
    if as_json:
        shown = dataclasses.asdict(found) | {"decision": as_labels(found.decision), "rules": list(found.decision.rules)}
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        print("\n".join(explanation.lines_of(found)))


def _items(file: Path) -> Iterator[dict[str, Any]]:
    """The labelled messages of a file; an invalid line is an error with its number."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise usage(f"{file}: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise usage(f"{file}:{number}: {error}") from None
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            raise usage(f"{file}:{number}: an object with a text is needed")
        yield item


def prompt(
    mode: Annotated[str, typer.Option(help="ANSWER or ACTION: the prompt of that mode instead of the rules.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print the rules as the soft router's prompt, or the prompt of one mode."""
    from pointsman.services.router.domain.enums import Mode
    from pointsman.services.router.domain.rule_docs import mode_prompt, soft_router_prompt

    if mode and mode.upper() not in Mode.__members__:
        raise typer.BadParameter(f"mode must be one of {', '.join(Mode)}")
    shown = mode_prompt(Mode[mode.upper()]) if mode else soft_router_prompt(book_with(None).document)
    print(json.dumps({"prompt": shown}, ensure_ascii=False) + "\n" if as_json else shown, end="")
