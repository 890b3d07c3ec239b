"""Works on a run with local workers and follows it; or leaves it before its end."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pointsman.api.handoff.v1.work_pb2 import Plan
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, Run
from pointsman.cli.exit_codes import EXIT_INTERRUPTED
from pointsman.cli.render.run_progress import View, view_for
from pointsman.cli.session.background import continue_in_background
from pointsman.cli.session.delivery_branch import NotDelivered, put_on_branch
from pointsman.cli.session.follow import TERMINAL, delivery_lines, exit_code, follow, program, question_lines
from pointsman.cli.session.landing import land_by_itself, trees_watched
from pointsman.cli.session.linked_runs import OVER, LinkCrew
from pointsman.cli.session.plan_review import apply_plan, approve_plan, asks_about_plan, edited, plan_lines, plan_of
from pointsman.cli.session.questions import RunLeft, follow_or_ask
from pointsman.cli.session.worker_specs import LocalWorkers
from pointsman.cli.session.workers import worker_for, worker_running, workspace_for
from pointsman.client import Client, Terms
from pointsman.worker.git import GitFailed

MOVE_SECONDS = 120.0
"""How long a control plane may be away, to restart or to move, before the command gives up."""


def patient_terms(project: str) -> Terms:
    """The terms of a command that follows a run: patient enough for a control plane that moves."""
    return Terms(project=project, patience_seconds=MOVE_SECONDS)


async def work_and_follow(client: Client, run_id: str, workers: LocalWorkers) -> int:
    """Works on a run, follows it to its end or to a question, and prints the result."""
    workspace = await workspace_for([workers.folder] if workers.folder else [])
    worker = worker_for(workspace, *workers.crew.specs(), run_id=run_id, shared=workers.crew.share)
    async with worker_running(client, worker), trees_watched(client, workers.folder):
        seen = 0
        if workers.review is not None:
            run = await _review_plan(client, run_id, workers)
            if asks_about_plan(run):
                return exit_code(run)
            seen = run.seq
        run = await follow_or_ask(client, run_id, workers.as_json, workers.verbose, seen)
    await report(client, run, workers.as_json, workers.folder)
    if run.state not in TERMINAL:
        workers.say(f"  then go on with the same crew: {workers.resume_command(run_id)}")
    if run.state == RUN_STATE_COMPLETE and run.accepted_commit and workers.folder:
        workers.say(await _branch(client, run, workers.folder))
        for line in await land_by_itself(client, run, workers.folder, _crew_of_links(workers, workers.folder)):
            workers.say(line)
    return exit_code(run)


def _crew_of_links(workers: LocalWorkers, folder: Path) -> LinkCrew:
    """The same crew for what is found while the work lands; an open pull request is followed by `queue work`."""
    view = partial(view_for, as_json=workers.as_json, verbose=workers.verbose)
    return LinkCrew(folder, workers.crew, view, (*OVER, pb.ENTRY_STATE_PROPOSED))


async def _review_plan(client: Client, run_id: str, workers: LocalWorkers) -> Run:
    """Shows the plan, has it edited and approves it, as the options say; else says how to go on."""
    review, show = workers.review, partial(view_for, as_json=workers.as_json, verbose=workers.verbose)
    assert review is not None
    run = await follow(client, run_id, show())
    if not asks_about_plan(run):
        return run
    run = await _apply_and_follow(client, run, review.given, show)
    run = await _apply_and_follow(client, run, edited(await plan_of(client, run_id)) if review.edit else None, show)
    workers.say("\n".join(("", *plan_lines(await plan_of(client, run_id)))))
    if review.approve:
        return await approve_plan(client, run)
    named = f"{program()} plan"
    workers.say(f"\n{run_id} waits for your word about the plan:")
    workers.say(f"  {named} show {run_id} --json > plan.json   # edit it, then: {named} apply {run_id} plan.json")
    workers.say(f"  {program()} answer {run_id} proceed        # then: {workers.resume_command(run_id)}")
    return run


async def _apply_and_follow(client: Client, run: Run, plan: Plan | None, show: Callable[[], View]) -> Run:
    """Puts a plan in the place of the one that is asked about, and waits until it is asked about."""
    if plan is None:
        return run
    await apply_plan(client, run, plan)
    return await follow(client, run.id, show(), run.seq)


async def leave_run(left: RunLeft, workers: LocalWorkers, *, needed: bool) -> int:
    """Leaves a run: continues it in the background where it needs this command's workers, else only detaches."""
    if not left.detached:
        print(f"stopped; {left.run_id} waits as it is. Go on: {workers.resume_command(left.run_id)}", file=sys.stderr)
        print(f"  or end it: {program()} cancel {left.run_id}", file=sys.stderr)
        return EXIT_INTERRUPTED
    if needed:
        return await continue_in_background(left.run_id, workers)
    workers.say(f"detached; `{program()} watch {left.run_id}` follows it")
    return 0


async def _branch(client: Client, run: Run, folder: Path) -> str:
    """Puts accepted work on a branch; on failure returns why, and how to do it later."""
    try:
        return await put_on_branch(client, run.id, folder, f"pointsman/{run.id}")
    except (NotDelivered, GitFailed) as error:
        return f"not put on a branch: {error}; `pointsman deliver {run.id}` does it at any time"


async def report(client: Client, run: Run, as_json: bool, folder: Path | None = None) -> None:
    """Prints the delivery of a run, or its question."""
    out = sys.stderr if as_json else sys.stdout
    if run.state in TERMINAL:
        delivery = await client.runs.delivery(run.id)
        print("\n".join(("", *delivery_lines(run, delivery, folder))), file=out)
    else:
        print("\n".join(("", *question_lines(run))), file=out)
