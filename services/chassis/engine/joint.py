"""Which commands of a batch are decided as one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pointsman.services.chassis.core.machine import Joint

if TYPE_CHECKING:
    from pointsman.services.chassis.engine.ledger import Submission


def parties(joint: Joint | None, items: Sequence["Submission"]) -> Sequence[Sequence["Submission"]]:
    """The batch in the order in which it is decided; those that are joined stand where the first of them stood.

    Nobody is joined with what is about the same thing, asks under the same id, or acts in another project.
    """
    if joint is None or len(items) == 1:
        return [(item,) for item in items]
    found: list[list[Submission]] = []
    open_parties: dict[tuple[str, str], tuple[list[Submission], set[str]]] = {}
    for item in items:
        subject = "" if item.acknowledges is not None else joint.subject(item.command)
        place = (item.command.entity_id, item.caller.project)
        party, known = open_parties.get(place, ([], set()))
        if not subject or subject in known or item.caller.request_id in known:
            open_parties.pop(place, None)
            party, known = [], set()
        if subject:
            open_parties[place] = (party, known)
            known.update((subject, item.caller.request_id))
        if not party:
            found.append(party)
        party.append(item)
    return found


def joined(joint: Joint | None, party: Sequence["Submission"]) -> Any:
    """The command that stands for all of them."""
    if joint is None or len(party) == 1:
        return party[0].command
    return joint.command([item.command for item in party])


def answers_to(joint: Joint | None, party: Sequence["Submission"], answer: Any) -> Sequence[Any]:
    """The answer to each, taken from the one to all of them."""
    return (answer,) if joint is None or len(party) == 1 else joint.answers(answer)
