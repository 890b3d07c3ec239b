"""`pointsman workflow …`: plans and their tasks, what is in the way, the files they come from, and `verify`."""

from collections.abc import Callable

import typer

from pointsman.cli.commands.workflow import constraints, fields, files, plans, tasks

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Plans, their tasks, and what is in the way.")

COMMANDS: dict[str, Callable[..., None]] = {
    "import": files.import_state,
    "export": files.export_state,
    "import-tasks": files.import_tasks,
    "export-tasks": files.export_tasks,
    "write-back": files.write_back,
    "load": files.load,
    "save": files.save,
    "set": fields.set_fields,
    "show": plans.show,
    "list": plans.listed,
    "resumable": plans.resumable,
    "watch": plans.watch,
    "execute": plans.execute,
    "pause": plans.pause,
    "resume": plans.resume,
    "unblock": plans.unblock,
    "cancel": plans.cancel,
    "next": tasks.take,
    "complete": tasks.complete,
    "fail": tasks.fail,
    "retry": tasks.retry,
    "skip": tasks.skip,
    "settle": tasks.settle,
    "release": tasks.release,
    "usage": tasks.usage,
    "merge": constraints.merge,
    "verify": constraints.verify,
    "waive": constraints.waive,
    "audit": plans.audit,
    "classify": files.classify,
}

for name, command in COMMANDS.items():
    app.command(name)(command)
