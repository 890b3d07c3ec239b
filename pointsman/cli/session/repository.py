"""The repository of a run, and what it adds to the order."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.workers import repository_at
from pointsman.client import Order
from pointsman.worker.git import GitFailed, commit_of_changes, repository_id, text, uncommitted
from pointsman.worker.survey import test_command_of

Say = Callable[[str], None]


async def find_repository(repo: Path | None) -> Path | None:
    """The top folder of the named repository, else of the current one; None outside of a repository."""
    if repo is not None:
        return await repository_at(repo)
    try:
        await text(Path(), "rev-parse", "--show-toplevel")
    except GitFailed:
        return None
    return await repository_at(Path())


async def with_repository(order: Order, folder: Path | None, say: Say, *, include_changes: bool) -> Order:
    """Adds the repository to an order and, where no verify command is given, the command that runs its tests."""
    if folder is None:
        return order
    changes = await uncommitted(folder)
    if changes and not include_changes:
        shown = ", ".join(changes[:5]) + (f" and {len(changes) - 5} more" if len(changes) > 5 else "")
        print(f"left out, because uncommitted: {shown} (--include-changes takes them in)", file=sys.stderr)
    head = await text(folder, "rev-parse", "HEAD")
    commit = await commit_of_changes(folder) if changes and include_changes else head
    order = replace(order, repository=Repository(id=await repository_id(folder), base_commit=commit))
    if order.verify_commands:
        return order
    found = await test_command_of(folder, commit)
    if not found:
        return order
    say(f"proof: `{' '.join(found)}` (found in the repository; --verify names another)")
    return replace(order, verify_commands=[found])


def require_repository(order: Order) -> None:
    """Ends the command if its message would start a run: a run with local workers needs a repository."""
    from pointsman.services.router.domain.classification.classify import classify
    from pointsman.services.router.rules import standard_rule_book

    found = classify(standard_rule_book(), order.message)
    if order.as_action or (str(found.mode) == "ACTION" and not found.fast_path):
        fail_usage("the work needs a git repository, and here is none; go into one, or name one with --repo")
