"""What people and the integrator say about entries."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, Way
from pointsman.services.orchestrator.domain.landing.model import Candidate, Finding, Layer, Proposal, Terms, Work
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.wire import enums

MAX_TITLE = 200
KINDS: Mapping[int, EntryEvent] = {
    number: EntryEvent[name.removeprefix("FINDING_KIND_")] for name, number in pb.FindingKind.items() if number
}


def terms(message: pb.LandingTerms, run: Run) -> Terms:
    """Where a run's work is to go."""
    words = " ".join(run.intent.split())
    title = words if len(words) <= MAX_TITLE else f"{words[: MAX_TITLE - 1]}…"
    return Terms(
        message.repository_id or run.order.repository_id,
        message.target,
        message.remote,
        enums.LANDING_WAY.or_default(message.way, Way.FAST_FORWARD),
        message.squash,
        message.priority,
        title,
        message.max_tokens or run.budget.tokens,
        message.max_cost_micros or run.budget.cost_micros,
        message.resolver,
        message.stack,
    )


def work_of(run: Run) -> Work:
    """The accepted work of a run."""
    bundle: dict[str, Any] = msgspec.json.decode(run.accepted_bundle) if run.accepted_bundle else {}
    size = int(bundle.get("size_bytes", bundle.get("sizeBytes", 0)))
    return Work(run.run_id, run.order.base_commit, run.accepted_commit, str(bundle.get("sha256", "")), size)


def report(request: pb.ReportEntryRequest) -> commands.Report:
    """What the integrator says."""
    return _REPORTS[str(request.WhichOneof("report"))](request)


def _proven(request: pb.ReportEntryRequest) -> Candidate:
    it = request.proven
    return Candidate(it.commit, it.tip, it.tree, it.base, it.grade, it.summary)


def _found(request: pb.ReportEntryRequest) -> Finding:
    it = request.found
    return Finding(
        KINDS[it.kind], it.text, tuple(it.files), tuple(it.other_run_ids), it.base, it.url, it.untrusted, it.floor
    )


def _proposed(request: pb.ReportEntryRequest) -> Proposal:
    it = request.proposed
    return Proposal(it.number, it.url, it.branch, it.head)


def _split(request: pb.ReportEntryRequest) -> commands.Split:
    return commands.Split(tuple(Layer(it.task_id, it.title, it.commit) for it in request.split.layers))


_REPORTS: Mapping[str, Callable[[pb.ReportEntryRequest], commands.Report]] = {
    "proven": _proven,
    "landed": lambda request: commands.Landed(request.landed.commit),
    "base_moved": lambda request: commands.BaseMoved(request.base_moved.commit),
    "found": _found,
    "proposed": _proposed,
    "split": _split,
    "held_up": lambda request: commands.HeldUp(request.held_up.text),
    "merged": lambda request: commands.Merged(request.merged.commit),
}
