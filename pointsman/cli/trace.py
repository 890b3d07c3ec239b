"""`pointsman trace RUN`: the run's timeline, as its spans show it: how long each state took, and why it was left."""

import typer

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.cli.asking import AsJson, InProject, RunId, ServerAt, ask, print_json
from pointsman.client import Client

app = typer.Typer(add_completion=False)
BAR_LENGTH = 40


@app.command()
def trace(*, run_id: RunId, server: ServerAt = "", project: InProject = "local", as_json: AsJson = False) -> None:
    """Print where a run's time went; its trace id finds the same in a trace store."""

    async def question(client: Client) -> int:
        run = await client.runs.get(run_id)
        rows = [row async for row in client.runs.transitions(run_id)]
        if as_json:
            print_json(rows)
            return 0
        print(f"trace {run.traceparent.split('-')[1] if run.traceparent else 'none'}")
        print("\n".join(timeline(rows)))
        return 0

    ask(server, project, question)


def timeline(rows: list[Transition]) -> list[str]:
    """One line per stay in a state: when, how long, which, and what ended it."""
    moves = [row for row in rows if row.from_state != row.to_state]
    if not moves:
        return []
    start = moves[0].at.ToNanoseconds()
    whole = max(rows[-1].at.ToNanoseconds() - start, 1)
    lines = []
    for entered, left in zip(moves, [*moves[1:], None], strict=True):
        begin = entered.at.ToNanoseconds()
        end = left.at.ToNanoseconds() if left else rows[-1].at.ToNanoseconds()
        offset = int((begin - start) * BAR_LENGTH / whole)
        bar = " " * offset + "█" * max(1, round((end - begin) * BAR_LENGTH / whole))
        event = f"→ {left.event}" if left else ""
        lines.append(
            f"{(begin - start) / 1e9:8.3f} s {(end - begin) / 1e9:8.3f} s  {entered.to_state:<16}|{bar:<{BAR_LENGTH}}| {event}"
        )
    return lines
