"""The repository of a run, and what it adds to the order."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.options.run_options import budget_of
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.usable_repository import explain_absence
from pointsman.client import Order
from pointsman.project import FILE_NAME, InvalidProjectFile, ProjectFile
from pointsman.worker.base_project import project_at
from pointsman.worker.git import commit_of_changes, repository_id, text, uncommitted
from pointsman.worker.survey import test_command_of

Say = Callable[[str], None]


async def with_repository(order: Order, folder: Path | None, say: Say, *, include_changes: bool) -> Order:
    """Adds the repository to an order and, where options do not say them, what its project file says."""
    if folder is None:
        return order
    changes = await uncommitted(folder)
    if changes and not include_changes:
        shown = ", ".join(changes[:5]) + (f" and {len(changes) - 5} more" if len(changes) > 5 else "")
        print(f"left out, because uncommitted: {shown} (--include-changes takes them in)", file=sys.stderr)
        if FILE_NAME in changes:
            print(f"{FILE_NAME} counts as it is committed: git add {FILE_NAME} && git commit", file=sys.stderr)
    head = await text(folder, "rev-parse", "HEAD")
    commit = await commit_of_changes(folder) if changes and include_changes else head
    order = replace(order, repository=Repository(id=await repository_id(folder), base_commit=commit))
    return await _with_project(order, folder, say)


async def _with_project(order: Order, folder: Path, say: Say) -> Order:
    """Adds budget and verify commands: those of options, else of the project file, else the tests that are found."""
    assert order.repository is not None
    commit = order.repository.base_commit
    project = await read_project(folder, commit)
    order = replace(order, budget=order.budget or budget_of(project.budget))
    if order.verify_commands:
        return order
    if project.proof.verify:
        say(f"proof: {', '.join(f'`{command.text}`' for command in project.proof.verify)} ({FILE_NAME})")
        return replace(order, verify_commands=[command.arguments for command in project.proof.verify])
    found = await test_command_of(folder, commit)
    if not found:
        return order
    say(f"proof: `{' '.join(found)}` (found in the repository; --verify names another)")
    return replace(order, verify_commands=[found])


async def read_project(folder: Path, commit: str) -> ProjectFile:
    """The project file of a commit; ends the command with every problem of an invalid one."""
    try:
        return await project_at(folder, commit)
    except InvalidProjectFile as error:
        fail_usage(f"the project file of commit {commit[:12]} has problems:\n{error}")


def starts_run(order: Order) -> bool:
    """Whether the message of an order would start a run, by the rules that come with Pointsman."""
    from pointsman.services.router.domain.classification.classify import classify
    from pointsman.services.router.rules import standard_rule_book

    found = classify(standard_rule_book(), order.message)
    return order.as_action or (str(found.mode) == "ACTION" and not found.fast_path)


def require_repository(order: Order, folder: Path | None, *, is_local: bool) -> None:
    """Ends the command if its message would start a run of local workers and there is no repository."""
    if is_local and folder is None and starts_run(order):
        fail_usage(explain_absence("the work"))
