"""`pointsman audit RUN|--all`: checks the journal of one run over the wire, or all stores directly."""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1.machine_pb2 import GetMachineResponse
from pointsman.api.orchestrator.v1.run_pb2 import RunState
from pointsman.audit.stores import audit_stores
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, ask, find_run, print_json
from pointsman.client import Client
from pointsman.services.chassis.core.codec import DIGEST_COLUMNS, chained_digest
from pointsman.services.chassis.core.config import StoreSettings, load

app = typer.Typer(add_completion=False)


@app.command()
def audit(
    *,
    run_id: Annotated[
        str, typer.Argument(help="The run's id, the beginning of it, or `last`; not needed with --all.")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Read all four stores of this machine and prove them.")] = False,
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Check a run's journal, or with --all every entity of the four stores: exit 0 when it holds, 1 when it does not."""
    if every:
        sys.exit(_audit_stores(as_json=as_json))
    if not run_id:
        raise typer.BadParameter("name a run, or --all", param_hint="RUN_ID")
    _audit_run(run_id, server, project, as_json=as_json)


def _audit_stores(*, as_json: bool) -> int:
    """Audits every store, prints the findings, and returns the exit code."""
    stores = load(StoreSettings)
    findings = asyncio.run(audit_stores(stores))
    broken = [(name, violation) for name, found in findings.items() for violation in found.violations]
    if as_json:
        print(json.dumps({name: asdict(found) for name, found in findings.items()}, indent=2))
        return EXIT_FAILED if broken else 0
    if not findings:
        print(f"there is no store in {stores.directory} yet: nothing to audit")
    for name, violation in broken:
        print(f"BROKEN  {name} {violation.invariant} {violation.entity_id} seq {violation.seq}: {violation.detail}")
    for name, found in findings.items():
        print(f"{name:<13} {found.transitions} transitions, {len(found.violations) or 'no'} violations")
    return EXIT_FAILED if broken else 0


def _audit_run(run_id: str, server: str, project: str, *, as_json: bool) -> None:
    async def question(client: Client) -> int:
        found = await find_run(client, run_id)
        rows = [row async for row in client.runs.transitions(found)]
        problems = findings(rows, await client.runs.machine(), project)
        if as_json:
            print_json(rows)
        for problem in problems:
            print(f"BROKEN  {problem}")
        if not problems and not as_json:
            print(
                f"{found}: {len(rows)} transitions, numbered without gap, chained, all in the table; ends {rows[-1].to_state}"
            )
        return EXIT_FAILED if problems else 0

    ask(server, project, question)


def findings(rows: list[Transition], machine: GetMachineResponse, project: str) -> list[str]:
    """The faults of a journal."""
    return [*_numbering(rows), *_moves(rows, machine), *_digests(rows, machine, project)]


def _numbering(rows: list[Transition]) -> Iterator[str]:
    for place, row in enumerate(rows, 1):
        if row.seq != place:
            yield f"seq {row.seq} stands where {place} should"


def _moves(rows: list[Transition], machine: GetMachineResponse) -> Iterator[str]:
    allowed = {(_name(row.source), row.event, _name(row.target)) for row in machine.transitions}
    terminal = {_name(state) for state in machine.terminal}
    state = ""
    for row in rows:
        move = (row.from_state, row.event, row.to_state)
        if row.from_state != state:
            yield f"seq {row.seq} leaves {row.from_state or 'nothing'}, but the run was in {state or 'nothing'}"
        if row.from_state in terminal and row.to_state != row.from_state:
            yield f"seq {row.seq} leaves {row.from_state}, which is an end"
        if row.from_state not in ("", row.to_state) and move not in allowed:
            yield f"seq {row.seq}: {' '.join(move)} is not in the table"
        state = row.to_state


def _digests(rows: list[Transition], machine: GetMachineResponse, project: str) -> Iterator[str]:
    """Each row's digest covers the row before; a run stays on the version of the machine that it started with."""
    versions = range(1, machine.version + 1)
    previous = ""
    for row in rows:
        if all(row.digest != chained_digest(previous, _digested(row, project, version)) for version in versions):
            yield f"seq {row.seq} is not what its digest says"
        previous = row.digest


def _digested(row: Transition, project: str, version: int) -> tuple[str | int, ...]:
    at_us = row.at.ToNanoseconds() // 1000
    values: dict[str, str | int] = {
        "entity_id": row.entity_id, "seq": row.seq, "kind": row.kind, "project": project, "run_id": row.run_id,
        "machine_version": version, "at_us": at_us, "event": row.event, "source": row.from_state,
        "target": row.to_state, "payload": row.payload_json, "actor": row.actor, "traceparent": row.traceparent,
    }  # fmt: skip
    return tuple(values[name] for name in DIGEST_COLUMNS)


def _name(state: RunState.ValueType) -> str:
    return RunState.Name(state).removeprefix("RUN_STATE_")
