"""A function for each command that imports its module.

They keep `pointsman --help` and each command from importing what only other commands need.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer


def up() -> "Typer":
    """`pointsman up`."""
    from pointsman.cli.commands.up import app

    return app


def demo() -> "Typer":
    """`pointsman demo`."""
    from pointsman.cli.commands.demo import app

    return app


def plan() -> "Typer":
    """`pointsman plan`."""
    from pointsman.cli.commands.plan import app

    return app


def init() -> "Typer":
    """`pointsman init`."""
    from pointsman.cli.commands.init import app

    return app


def config() -> "Typer":
    """`pointsman config`."""
    from pointsman.cli.commands.config import app

    return app


def run() -> "Typer":
    """`pointsman run`."""
    from pointsman.cli.commands.run import app

    return app


def rerun() -> "Typer":
    """`pointsman rerun`."""
    from pointsman.cli.commands.rerun import app

    return app


def schedule() -> "Typer":
    """`pointsman schedule`."""
    from pointsman.cli.commands.schedule import app

    return app


def agent() -> "Typer":
    """`pointsman agent`."""
    from pointsman.cli.commands.agent import app

    return app


def agents() -> "Typer":
    """`pointsman agents`."""
    from pointsman.cli.commands.agents import app

    return app


def projects() -> "Typer":
    """`pointsman projects`."""
    from pointsman.cli.commands.projects import app

    return app


def context() -> "Typer":
    """`pointsman context`."""
    from pointsman.cli.commands.context import app

    return app


def runs() -> "Typer":
    """`pointsman runs`."""
    from pointsman.cli.commands.runs import app

    return app


def show() -> "Typer":
    """`pointsman show`."""
    from pointsman.cli.commands.show import app

    return app


def watch() -> "Typer":
    """`pointsman watch`."""
    from pointsman.cli.commands.watch import app

    return app


def logs() -> "Typer":
    """`pointsman logs`."""
    from pointsman.cli.commands.logs import app

    return app


def answer() -> "Typer":
    """`pointsman answer`."""
    from pointsman.cli.commands.answer import app

    return app


def change() -> "Typer":
    """`pointsman change`."""
    from pointsman.cli.commands.change import app

    return app


def cancel() -> "Typer":
    """`pointsman cancel`."""
    from pointsman.cli.commands.cancel import app

    return app


def trace() -> "Typer":
    """`pointsman trace`."""
    from pointsman.cli.commands.trace import app

    return app


def audit() -> "Typer":
    """`pointsman audit`."""
    from pointsman.cli.commands.audit import app

    return app


def deliver() -> "Typer":
    """`pointsman deliver`."""
    from pointsman.cli.commands.deliver import app

    return app


def mcp() -> "Typer":
    """`pointsman mcp`."""
    from pointsman.cli.commands.mcp import app

    return app


def queue() -> "Typer":
    """`pointsman queue`."""
    from pointsman.cli.commands.queue import app

    return app


def notify() -> "Typer":
    """`pointsman notify`."""
    from pointsman.cli.commands.notify import app

    return app


def evidence() -> "Typer":
    """`pointsman evidence`."""
    from pointsman.cli.commands.evidence import app

    return app


def proof() -> "Typer":
    """`pointsman proof`."""
    from pointsman.cli.commands.proof import app

    return app


def serve() -> "Typer":
    """`pointsman serve`."""
    from pointsman.cli.commands.serve import app

    return app


def route() -> "Typer":
    """`pointsman route`."""
    from pointsman.cli.commands.route import app

    return app


def thinking() -> "Typer":
    """`pointsman thinking`."""
    from pointsman.cli.commands.thinking import app

    return app


def machine() -> "Typer":
    """`pointsman machine`."""
    from pointsman.cli.commands.machine import app

    return app


def migrate() -> "Typer":
    """`pointsman migrate`."""
    from pointsman.cli.commands.migrate import app

    return app


def pipeline() -> "Typer":
    """`pointsman pipeline`."""
    from pointsman.cli.commands.pipeline import app

    return app


def workflow() -> "Typer":
    """`pointsman workflow`."""
    from pointsman.cli.commands.workflow import app

    return app


def clean() -> "Typer":
    """`pointsman clean`."""
    from pointsman.cli.commands.clean import app

    return app


def down() -> "Typer":
    """`pointsman down`."""
    from pointsman.cli.commands.down import app

    return app


def completion() -> "Typer":
    """`pointsman completion`."""
    from pointsman.cli.commands.completion import app

    return app


def doctor() -> "Typer":
    """`pointsman doctor`."""
    from pointsman.cli.commands.doctor import app

    return app


def console() -> "Typer":
    """`pointsman console`."""
    from pointsman.cli.commands.console import app

    return app


def token() -> "Typer":
    """`pointsman token`."""
    from pointsman.cli.commands.token import app

    return app
