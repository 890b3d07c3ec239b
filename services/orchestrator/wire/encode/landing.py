"""Entries of merge queues."""

from pointsman._shared.excerpt import excerpt
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.services.chassis.rpc.paging import timestamp
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryState
from pointsman.services.orchestrator.domain.landing.model import Entry, Link, Stack, Terms
from pointsman.services.orchestrator.domain.views import EntryView
from pointsman.services.orchestrator.wire import enums

BUNDLE_TYPE = "application/x-git-bundle"
LINE_LENGTH, MOST_LINKS, MOST_FILES, MOST_PATH = 300, 8, 4, 120
"""What an entry of a list has room for."""
_WAITS = {
    EntryState.QUEUED: "the integrator: `pointsman queue work` in the repository",
    EntryState.PROVING: "the proof on the tip of the target",
    EntryState.LANDING: "the push",
    EntryState.PROPOSED: "checks and review of the pull request",
    EntryState.WAITING: "its linked run",
    EntryState.ASKED: "a person: `pointsman queue answer`",
}


def entry(view: EntryView) -> pb.Entry:
    """An entry as it is now."""
    it = view.entry
    message = pb.Entry(
        id=it.entry_id,
        state=enums.ENTRY_STATE.to_wire(it.status),
        queue_id=it.queue_id,
        terms=_terms(it.terms),
        run_id=it.run_id,
        title=it.terms.title,
        work_run_id=it.work.run_id,
        base_commit=it.work.base_commit,
        commit=it.work.commit,
        floor=it.work.floor or it.work.base_commit,
        links=map(_link, it.links),
        approved=it.approved,
        rounds=it.rounds,
        agent_id=it.agent_id,
        epoch=it.epoch,
        landed_commit=it.landed_commit,
        end_reason=it.end_reason,
        waiting_for=_waits_for(it) + (f"; held up: {it.held_up}" if it.held_up else ""),
        held_up=it.held_up,
        seq=view.seq,
        created_at=timestamp(view.created_at_us),
        updated_at=timestamp(view.updated_at_us),
    )
    _add_parts(message, it)
    return message


def brief(view: EntryView) -> pb.Entry:
    """An entry in a list: bounded, whatever its findings say."""
    message = entry(view)
    message.ClearField("bundle")
    message.ClearField("candidate")
    message.title, message.end_reason = message.title[:LINE_LENGTH], message.end_reason[:LINE_LENGTH]
    del message.links[:-MOST_LINKS]
    for layer in message.stack.layers:
        layer.title = layer.title[:MOST_PATH]
    if message.HasField("finding"):
        finding = message.finding
        finding.text = excerpt(finding.text, LINE_LENGTH)
        finding.ClearField("other_run_ids")
        shown = [path[:MOST_PATH] for path in finding.files[:MOST_FILES]]
        finding.ClearField("files")
        finding.files.extend(shown)
    return message


def _link(it: Link) -> pb.LinkedRun:
    kind = _kind(it.kind)
    spent = {"tokens": it.tokens, "cost_micros": it.cost_micros}
    return pb.LinkedRun(run_id=it.run_id, kind=kind, outcome=it.outcome, resolver=it.resolver, **spent)


def _waits_for(it: Entry) -> str:
    if it.status is EntryState.ASKED and it.spent:
        return "a person: `pointsman queue answer`; its linked runs have spent what they may"
    if it.status is EntryState.PROPOSED and it.stack is not None and it.stack.on.branch:
        return f"checks and review of the pull request, and the layer below, {it.stack.below_id}"
    link = it.open_link if it.status is EntryState.WAITING else None
    if link is None:
        return _WAITS.get(it.status, "")
    return (
        f"its linked run: an agent of the project, or `pointsman watch {link.run_id} --repo . --agent …`, works on it"
    )


def _terms(it: Terms) -> pb.LandingTerms:
    return pb.LandingTerms(
        repository_id=it.repository_id,
        target=it.target,
        remote=it.remote,
        way=enums.LANDING_WAY.to_wire(it.way),
        squash=it.squash,
        priority=it.priority,
        max_tokens=it.max_tokens,
        max_cost_micros=it.max_cost_micros,
        resolver=it.resolver,
        stack=it.stack,
    )


def _stack(it: Stack, above_id: str) -> pb.StackPlace:
    layers = [pb.Layer(task_id=one.task_id, title=one.title, commit=one.commit) for one in it.layers]
    return pb.StackPlace(
        number=it.number,
        layers=layers,
        on_commit=it.on.commit,
        on_branch=it.on.branch,
        below_entry_id=it.below_id,
        above_entry_id=above_id,
    )


def _add_parts(message: pb.Entry, it: Entry) -> None:
    if it.work.bundle_sha256:
        bundle = handoff.ArtifactRef(
            sha256=it.work.bundle_sha256, size_bytes=it.work.bundle_bytes, media_type=BUNDLE_TYPE
        )
        message.bundle.CopyFrom(bundle)
    if it.candidate is not None:
        one = it.candidate
        message.candidate.CopyFrom(
            pb.LandingCandidate(
                commit=one.commit, tip=one.tip, tree=one.tree, base=one.base, grade=one.grade, summary=one.summary
            )
        )
    if it.finding is not None:
        found = it.finding
        message.finding.CopyFrom(
            pb.LandingFinding(
                kind=_kind(found.kind),
                text=found.text,
                files=found.files,
                other_run_ids=found.other_run_ids,
                base=found.base,
                url=found.url,
                untrusted=found.untrusted,
                floor=found.floor,
            )
        )
    if it.stack is not None:
        message.stack.CopyFrom(_stack(it.stack, it.above_id))
    if it.proposal is not None:
        made = it.proposal
        message.proposal.CopyFrom(pb.Proposal(number=made.number, url=made.url, branch=made.branch, head=made.head))


def _kind(event: EntryEvent) -> pb.FindingKind.ValueType:
    return pb.FindingKind.Value(f"FINDING_KIND_{event.name}")
