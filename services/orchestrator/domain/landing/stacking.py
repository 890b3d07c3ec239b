"""Stacks: what a layer says to the one above it."""

from collections.abc import Iterator
from dataclasses import replace

from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.orchestrator.domain.landing.commands import PutLayer, Split
from pointsman.services.orchestrator.domain.landing.enums import EntryState
from pointsman.services.orchestrator.domain.landing.model import Below, Entry, Stack

TELL_ABOVE = "landing.put_layer"
"""The effect by which a layer says where the one above it stands now."""


def require_layers(entry: Entry, report: Split) -> None:
    """The highest layer is all of the work: nothing is left out, and nothing comes in that was not accepted."""
    if not report.layers or report.layers[-1].commit != entry.work.commit:
        raise invalid_field(
            "split.layers", f"the last layer has to be at {entry.work.commit[:12]}, the accepted commit"
        )


def layer_above(entry: Entry) -> Iterator[PutLayer]:
    """What the layer above has to know of this one; nothing for the highest, and outside of a stack."""
    stack, upper_id = entry.stack, entry.above_id
    if stack is None or not upper_id:
        return
    layer, below = stack.layers[stack.number], stack.layers[stack.number - 1]
    ended = str(entry.status) if entry.ended and entry.status is not EntryState.LANDED else ""
    place = Stack(stack.number + 1, stack.layers, stack.whole, _on(entry), entry.entry_id)
    terms = replace(entry.terms, title=layer.title or entry.terms.title)
    work = replace(stack.whole, commit=layer.commit, floor=below.commit)
    yield PutLayer(upper_id, entry.queue_id, terms, work, place, ended)


def _on(entry: Entry) -> Below:
    """The open pull request of a layer, or the target where it has landed or was ended."""
    if entry.ended or entry.proposal is None:
        return Below()
    return Below(entry.proposal.head, entry.proposal.branch)
