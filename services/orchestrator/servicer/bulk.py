"""ChangeRuns: the same change for every run that a selection names, a page at a time."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.errors import Refusal, invalid_field
from pointsman.services.chassis.core.ids import derived_id
from pointsman.services.chassis.rpc.paging import page_key, page_token
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.listing import Listing
from pointsman.services.orchestrator.store.run_queries import FOREVER, RunFilter
from pointsman.services.orchestrator.submit import SubmitMessage
from pointsman.services.orchestrator.wire import decode, enums

DEFAULT_RUNS = 50
REQUEST_ID_LENGTH = 128
SHOWN_LENGTH = 200
ENDED = frozenset({runs.RUN_STATE_COMPLETE, runs.RUN_STATE_CANCELLED, runs.RUN_STATE_FAILED})


@dataclass(frozen=True, slots=True)
class BulkChanges:
    """Changes runs one by one through their own commands, each under a request_id that derives from the call's."""

    store: OrchestratorStore
    submit: SubmitMessage
    listing: Listing[runs.Run]

    async def change(self, request: pb.ChangeRunsRequest, caller: Caller) -> pb.ChangeRunsResponse:
        """Change the runs of one page, or say what would be changed."""
        wanted = _selected(request, caller.project)
        key = page_key(request.page_token, int, str) or (FOREVER, "")
        page = await self.listing.page(wanted, (int(key[0]), str(key[1])), request.limit or DEFAULT_RUNS)
        changed = [await self._one(request, line.shown, caller) for line in page.runs]
        return pb.ChangeRunsResponse(
            runs=changed, next_page_token=page_token(*page.next_place) if page.next_place else ""
        )

    async def _one(self, request: pb.ChangeRunsRequest, run: runs.Run, caller: Caller) -> pb.ChangedRun:
        """One run: what came of it, or why it was refused."""
        shown = pb.ChangedRun(run_id=run.id, intent=" ".join(run.intent.split())[:SHOWN_LENGTH], state=run.state)
        if refusal := _why_not(request, run):
            shown.refusal = refusal
        elif not request.dry_run:
            try:
                shown.new_run_id = await self._apply(request, run, caller)
                shown.changed = True
            except Refusal as refused:
                shown.refusal = refused.message
        return shown

    async def _apply(self, request: pb.ChangeRunsRequest, run: runs.Run, caller: Caller) -> str:
        """Send the run's own command; the id of the run that it starts, if it starts one."""
        own = derived_id(f"{request.request_id}/{run.id}", REQUEST_ID_LENGTH)
        # without page and limit: a client that begins anew with the same request_id may cut the pages otherwise
        change = pb.ChangeRunsRequest()
        change.CopyFrom(request)
        for name in ("page_token", "limit", "selection"):
            change.ClearField(name)
        digest = hashlib.sha256(change.SerializeToString(deterministic=True)).hexdigest()
        each = replace(caller, request_id=own, fingerprint=digest, traceparent="")
        match request.WhichOneof("change"):
            case "cancel":
                await self.store.ledger.submit(each, commands.Cancel(run.id, request.cancel.reason))
            case "answer":
                reply = enums.ANSWER_KIND.required(request.answer.answer)
                command = commands.Answer(
                    run.id, run.question.id, reply, request.answer.text, principal=caller.principal
                )
                await self.store.ledger.submit(each, command)
            case "rerun":
                again = pb.RerunRequest(
                    request_id=own, run_id=run.id, point=request.rerun.point, text=request.rerun.text
                )
                return (await self.submit.rerun(again, each)).run.run_id
        return ""


def _why_not(request: pb.ChangeRunsRequest, run: runs.Run) -> str:
    """Why a change is not for a run as it is now; empty where it is."""
    kind, ended = request.WhichOneof("change"), run.state in ENDED
    if kind == "cancel" and ended:
        return "it has ended already"
    if kind == "rerun" and not ended:
        return "it has not ended"
    if kind == "answer" and not run.HasField("question"):
        return "it asks nothing"
    if kind == "answer" and request.answer.answer not in run.question.takes:
        taken = ", ".join(runs.AnswerKind.Name(one).removeprefix("ANSWER_KIND_") for one in run.question.takes)
        return f"its question takes {taken}"
    return ""


def _selected(request: pb.ChangeRunsRequest, project: str) -> RunFilter:
    chosen = request.selection
    if not chosen.ListFields():
        raise invalid_field("selection", "is empty, which would be every run; name a state, label, age or text")
    if request.WhichOneof("change") is None:
        raise invalid_field("change", "say cancel, answer or rerun")
    if request.HasField("rerun") and not chosen.HasField("created_before"):
        raise invalid_field(
            "selection.created_before", "is needed with rerun: else the new runs would be done again themselves"
        )
    before_us = to_us(chosen.created_before.ToDatetime(UTC)) if chosen.HasField("created_before") else FOREVER
    after_us = to_us(chosen.created_after.ToDatetime(UTC)) if chosen.HasField("created_after") else 0
    return RunFilter(
        project, decode.runs.state_names(chosen.states), tuple(chosen.labels.items()), chosen.session_id, after_us,
        before_us, "", frozenset(enums.ATTENTION.all_to_domain(chosen.attention)), chosen.text,
    )  # fmt: skip
