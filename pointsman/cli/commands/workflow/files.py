"""Commands about files: workflow-state.json and tasks.md in and out, always written whole."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pointsman.api.common.v1 import common_pb2
from pointsman.api.workflow.v1 import reading_pb2
from pointsman.cli.options.input_files import read_text
from pointsman.cli.options.order_options import TagOption
from pointsman.cli.render.output_files import write_file
from pointsman.cli.session.workflow_client import (
    AsJson,
    File,
    IsJson,
    Server,
    Stub,
    WorkflowId,
    ask,
    progress_line,
    say,
    task_status_name,
    whole_workflow,
)
from pointsman.services.chassis.core.ids import new_nonce
from pointsman.services.workflow.domain.dependency_classes import classify_dependencies as classes_of
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.formats.tasks_markdown import read_tasks
from pointsman.services.workflow.formats.tasks_reader import with_statuses
from pointsman.services.workflow.formats.workflow_state_reader import PROJECT_ID

STATE_FILE = "workflow-state.json"
TASKS_FILE = "tasks.md"
DEFAULT_ROOT = Path("~/.claude/workflows")
ID_CHARACTERS = "letters, digits, '_' and '-'"

Output = Annotated[str, typer.Option("--output", "-o", help="Write to this file instead of standard output.")]
Replace = Annotated[bool, typer.Option("--replace", help="Import over a stored workflow of that id.")]
OwnId = Annotated[str, typer.Option("--id", help="The workflow's id; default: the document's project_id.")]
PlanId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="The workflow's id; a new one makes a new workflow.")]
PlanFile = Annotated[Path, typer.Argument(help="The file that the tasks were imported from.", exists=True)]
Chinese = Annotated[bool, typer.Option("--chinese", help="Chinese field names.")]
Folder = Annotated[str, typer.Option(help="Where the two files are; default: ~/.claude/workflows/<id>/.")]


def import_state(
    file: File = "-", workflow_id: OwnId = "", replace: Replace = False, server: Server = "", as_json: AsJson = False
) -> None:
    """Import a workflow-state.json; prints the workflow's id."""
    request = _state_request(read_text(file), workflow_id, replace)
    answer = ask(server, lambda stub: stub.ImportState(request))
    say(answer, as_json, answer.progress.workflow_id)


def export_state(
    workflow_id: WorkflowId,
    output: Output = "",
    server: Server = "",
    as_json: IsJson = True,  # noqa: ARG001 - every command takes it
) -> None:
    """Export a workflow as workflow-state.json."""
    answer = ask(server, lambda stub: stub.ExportState(reading_pb2.ExportStateRequest(workflow_id=workflow_id)))
    _write(answer.state_json, output)


def import_tasks(
    workflow_id: PlanId = "", file: File = "-", tag: TagOption = "", server: Server = "", as_json: AsJson = False
) -> None:
    """Import a file of tasks as the plan of a workflow; a new one is created.

    The format is recognised by the content: our tasks.md, spec-kit's tasks.md, beads' issues.jsonl, `gh issue list --json …`, task-master's tasks.json.
    """
    _require_plan_id(workflow_id, file)
    markdown = read_text(file)
    if not markdown.strip():
        raise typer.BadParameter("there are no tasks to import: the file, or standard input, is empty")
    request = reading_pb2.ImportTasksRequest(
        request_id=new_nonce(), workflow_id=workflow_id, markdown=markdown, tag=tag
    )
    answer = ask(server, lambda stub: stub.ImportTasks(request))
    say(answer, as_json, progress_line(answer.progress))


def export_tasks(
    workflow_id: WorkflowId, chinese: Chinese = False, output: Output = "", server: Server = "", as_json: AsJson = False
) -> None:
    """Export the tasks of a workflow as tasks.md."""
    markdown = ask(server, lambda stub: _markdown(stub, workflow_id, chinese))
    _write(json.dumps({"markdown": markdown}, ensure_ascii=False) + "\n" if as_json else markdown, output)


def write_back(
    workflow_id: WorkflowId, file: PlanFile, tag: TagOption = "", server: Server = "", as_json: AsJson = False
) -> None:
    """Write the states of tasks into the file that they came from: spec-kit's, beads' or task-master's."""
    before = read_text(str(file))
    whole = ask(server, lambda stub: whole_workflow(stub, workflow_id))
    statuses = {task.spec.task_id: TaskStatus(task_status_name(task.status)) for task in whole.tasks}
    after, changed = with_statuses(before, statuses, tag)
    if changed:
        write_file(file, after)
    print(json.dumps({"file": str(file), "changed": changed}) if as_json else f"{file}: {changed} tasks changed")


def save(
    workflow_id: WorkflowId, folder: Folder = "", chinese: Chinese = False, server: Server = "", as_json: AsJson = False
) -> None:
    """Write both files of a workflow into its folder."""
    target = _folder(workflow_id, folder)
    state, markdown = ask(server, lambda stub: _both(stub, workflow_id, chinese))
    write_file(target / STATE_FILE, state)
    if markdown:
        write_file(target / TASKS_FILE, markdown)
    print(json.dumps({"folder": str(target)}) if as_json else target)


def load(
    workflow_id: WorkflowId, folder: Folder = "", replace: Replace = False, server: Server = "", as_json: AsJson = False
) -> None:
    """Import both files from a workflow's folder, or neither; the tasks.md may be missing."""
    source = _folder(workflow_id, folder)
    request = _state_request(read_text(str(source / STATE_FILE)), workflow_id, replace)
    if (source / TASKS_FILE).exists():
        request.tasks_markdown = read_text(str(source / TASKS_FILE))
    progress = ask(server, lambda stub: stub.ImportState(request)).progress
    say(progress, as_json, progress_line(progress))


def classify(file: File = "-", as_json: AsJson = False) -> None:
    """Say which outside dependencies each task of a tasks.md seems to have; needs no control plane."""
    planned, _ = read_tasks(read_text(file))
    found = [(task.spec, [str(one) for one in classes_of(task.spec)]) for task in planned]
    if as_json:
        shown = [{"task_id": spec.task_id, "name": spec.name, "classes": classes} for spec, classes in found]
        print(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    for spec, classes in found:
        print(f"{spec.task_id:<8} {', '.join(classes) or '-':<24} {spec.name}")


def _require_plan_id(workflow_id: str, file: str) -> None:
    """Refuses an import without a workflow id."""
    if PROJECT_ID.fullmatch(workflow_id):
        return
    is_file = "." in workflow_id or "/" in workflow_id
    if workflow_id and not is_file:
        raise typer.BadParameter(f"the workflow's name '{workflow_id}' may only have {ID_CHARACTERS}")
    named = workflow_id or (file if file != "-" else TASKS_FILE)
    raise typer.BadParameter(
        "the workflow that gets the tasks is missing: name it before the file, a new name makes a new workflow, "
        f"for instance: pointsman workflow import-tasks my-plan {named}"
    )


def _state_request(text: str, workflow_id: str, replace: bool) -> reading_pb2.ImportStateRequest:
    return reading_pb2.ImportStateRequest(
        request_id=new_nonce(), workflow_id=workflow_id, state_json=text, replace=replace
    )


async def _both(stub: Stub, workflow_id: str, chinese: bool) -> tuple[str, str]:
    state = await stub.ExportState(reading_pb2.ExportStateRequest(workflow_id=workflow_id))
    return state.state_json, await _markdown(stub, workflow_id, chinese)


async def _markdown(stub: Stub, workflow_id: str, chinese: bool) -> str:
    page, parts = common_pb2.Page(page_size=1000), []
    while True:
        request = reading_pb2.ExportTasksRequest(workflow_id=workflow_id, page=page, chinese=chinese)
        answer = await stub.ExportTasks(request)
        parts.append(answer.markdown)
        page.page_token = answer.next_page_token
        if not page.page_token:
            return "".join(parts)


def _write(text: str, output: str) -> None:
    if output:
        write_file(output, text)
    else:
        print(text, end="")


def _folder(workflow_id: str, folder: str) -> Path:
    """The folder of a workflow's files; an id that could leave the default root is refused."""
    if folder:
        return Path(folder).expanduser()
    if not PROJECT_ID.fullmatch(workflow_id):
        raise typer.BadParameter(f"a workflow's id has only {ID_CHARACTERS}")
    return (DEFAULT_ROOT / workflow_id).expanduser()
