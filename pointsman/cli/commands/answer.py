"""`pointsman answer RUN ANSWER`: a person's answer to the open question."""

from typing import Annotated

import typer

from pointsman.api.orchestrator.v1.agent_pb2 import AGENT_STATE_LOST
from pointsman.api.orchestrator.v1.orchestrator_pb2 import AnswerEach
from pointsman.api.orchestrator.v1.run_pb2 import AnswerKind
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.run_options import parse_budget
from pointsman.cli.options.selection_options import (
    LabelOption,
    MatchOption,
    OlderOption,
    Selected,
    StateOption,
    YesOption,
)
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.render.run_progress import status
from pointsman.cli.session.bulk import change_selected
from pointsman.cli.session.control_plane import Plane
from pointsman.cli.session.follow import TERMINAL, question_lines
from pointsman.cli.session.missing_agents import with_its_crew
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, SomeRunId, ask_plane, find_run, print_json
from pointsman.client import Client, Reply, RunsChange

app = typer.Typer(add_completion=False)
CONFIDENT = ("clarified", "switch", "keep", "merge")


@app.command()
def answer(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: SomeRunId = "",
    reply: Annotated[
        str, typer.Argument(metavar="ANSWER", help="For example accept, reject, clarified; empty asks.")
    ] = "",
    text: Annotated[str, typer.Option(help="The words that go with it.")] = "",
    state: StateOption = None,
    label: LabelOption = None,
    older: OlderOption = "",
    match: MatchOption = "",
    yes: YesOption = False,
    task: Annotated[str, typer.Option(help="The task it is about.")] = "",
    stage: Annotated[str, typer.Option(help="The stage it is about.")] = "",
    confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="How sure you are, 0 to 1 (default 1); with clarified, switch, keep, merge."),
    ] = None,
    budget: Annotated[str, typer.Option(help="With raise: the new budget, as in `pointsman run --budget`.")] = "",
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Answer the question that a run waits with, or those of all selected runs; without an answer, show it."""
    selected = Selected(state or (), label or (), older, match)
    if selected.is_given:  # then the only word is the answer
        change = RunsChange(answer=AnswerEach(answer=_kind(run_id, "with a selection the only word"), text=text))
        change_selected(selected, change, (server, project), yes=yes, as_json=as_json)
    _check_one(run_id, reply, confidence)

    async def question(client: Client, plane: Plane) -> int:
        run = await client.runs.get(await find_run(client, run_id))
        if not run.HasField("question"):
            print(f"{run.id} asks nothing")
            return EXIT_FAILED
        if not reply:
            print("\n".join(question_lines(run)))
            return 0
        given = Reply(_kind(reply), text, task, stage, confidence, parse_budget(budget))
        run = await client.runs.answer(run.id, run.question.id, given)
        if as_json:
            print_json(run)
        else:
            print(status(run))
            if run.state not in TERMINAL and not await _has_agents(client, plane):
                print(f"nobody works on it now; go on {with_its_crew(run.id)}")
        return 0

    ask_plane(server, project, question)


def _kind(reply: str, what: str = "") -> AnswerKind.ValueType:
    """The answer that a word names."""
    name = f"ANSWER_KIND_{reply.upper().replace('-', '_')}"
    if name not in AnswerKind.keys():  # noqa: SIM118 - an enum wrapper, not a dict
        said = f"; {what} is the answer" if what else ""
        fail_usage(f"there is no answer '{reply}'{said}; `pointsman answer RUN` shows those that a question takes")
    return AnswerKind.Value(name)


def _check_one(run_id: str, reply: str, confidence: float | None) -> None:
    """Ends the command unless it names a run and an answer that there is."""
    if not run_id:
        fail_usage("name a run, or select runs with --state, --label, --older or --match")
    if reply:
        _kind(reply)
    if confidence is not None and reply.lower() not in CONFIDENT:
        fail_usage(f"--confidence goes with the answers {', '.join(CONFIDENT)}")


async def _has_agents(client: Client, plane: Plane) -> bool:
    """Whether live agents exist; an embedded control plane has none."""
    if plane.embedded:
        return False
    return any([one.state != AGENT_STATE_LOST async for one in client.agents.all()])
