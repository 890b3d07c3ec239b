"""Entries of merge queues for people."""

from collections.abc import Iterator, Sequence

from pointsman.api.orchestrator.v1 import landing_pb2 as pb

HEADER = f"{'ENTRY':<32}  {'STATE':<10}  {'TARGET':<20}  {'ROUNDS':<6}  WHAT"
INDENT = "  "


def state_of(entry: pb.Entry) -> str:
    """The state without its prefix."""
    return pb.EntryState.Name(entry.state).removeprefix("ENTRY_STATE_")


def target_of(entry: pb.Entry) -> str:
    """The target branch, with its remote."""
    return f"{entry.terms.remote}/{entry.terms.target}" if entry.terms.remote else entry.terms.target


def entry_table(entries: Sequence[pb.Entry]) -> Iterator[str]:
    """A header and a line per entry, or one line that says how to begin."""
    if not entries:
        yield "no entries; `pointsman deliver RUN --queue` puts work in"
        return
    yield HEADER
    for entry in entries:
        yield f"{entry.id:<32}  {state_of(entry):<10}  {target_of(entry):<20}  {entry.rounds:<6}  {entry.title[:60]}"


def entry_lines(entry: pb.Entry) -> Iterator[str]:
    """Everything that a person has to know about an entry and its runs, as one story."""
    yield f"{entry.id}  {state_of(entry)}  {target_of(entry)}  {entry.title}"
    yield f"{INDENT}run {entry.run_id}, work {entry.commit[:12]} of {entry.work_run_id}"
    if entry.HasField("stack"):
        yield f"{INDENT}{stack_line(entry.stack)}"
    for link in entry.links:
        kind = pb.FindingKind.Name(link.kind).removeprefix("FINDING_KIND_").lower()
        spent = f", {link.tokens} tokens" if link.tokens else ""
        whose = ", the resolver's" if link.resolver else ""
        yield f"{INDENT}linked run {link.run_id} ({kind}{whose}): {link.outcome or 'at work'}{spent}"
    if entry.proposal.url:
        yield f"{INDENT}pull request {entry.proposal.url}"
    if entry.landed_commit:
        yield f"{INDENT}landed with {entry.landed_commit[:12]}"
    elif entry.waiting_for:
        yield f"{INDENT}waits for {entry.waiting_for}"
    if entry.HasField("finding") and not entry.landed_commit:
        yield from _finding(entry.finding)
    if entry.end_reason:
        yield f"{INDENT}{entry.end_reason}"


def stack_line(place: pb.StackPlace) -> str:
    """Where an entry stands in its stack."""
    on = f", on {place.on_branch}" if place.on_branch else ""
    above = ", ".join(layer.title for layer in place.layers[place.number :])
    return f"layer {place.number} of {len(place.layers)}{on}{above and f'; above it: {above}'}"


def prediction_lines(run_id: str, coming: pb.Prediction) -> Iterator[str]:
    """A predicted conflict, as one of its two runs sees it."""
    sides = [(coming.run_id, coming.task_id), (coming.other_run_id, coming.other_task_id)]
    (_, mine), (other, theirs) = sides if coming.run_id == run_id else reversed(sides)
    whose = f"{other} ({theirs})" if theirs else other
    of = f" of {mine}" if mine else ""
    what = "both plans name" if coming.declared else "both change"
    yield f"coming conflict{of} with {whose}, seen {coming.seen_at.ToDatetime():%H:%M:%S} UTC: {what} {', '.join(coming.files)}"


def _finding(found: pb.LandingFinding) -> Iterator[str]:
    kind = pb.FindingKind.Name(found.kind).removeprefix("FINDING_KIND_").lower().replace("_", " ")
    whose = ", words of the forge" if found.untrusted else ""
    yield f"{INDENT}{kind}{whose}: {', '.join(found.files)}"
    for line in found.text.splitlines()[:40]:
        yield f"{INDENT}{INDENT}{line}"
