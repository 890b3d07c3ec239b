"""Which research a surveyor may take: the survey itself, and other questions while no researcher is present."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pointsman.services.orchestrator.domain.builtin import is_survey_slot
from pointsman.services.orchestrator.domain.words import Capability
from pointsman.services.orchestrator.store.agents import Present

_SLOT = re.compile(r'"slot":"([A-Za-z0-9_.-]*)"')


class Researchers:
    """Where researchers are present now."""

    def __init__(self, present: Mapping[str, tuple[Present, ...]]) -> None:
        self._present = present

    def may_survey(self, capabilities: frozenset[Capability], row: Any) -> bool:
        """Whether an agent with these capabilities may take the research of a row as a surveyor."""
        if Capability.SURVEY not in capabilities or row.capability != Capability.RESEARCH:
            return False
        slot = _SLOT.search(row.body)
        if slot is not None and is_survey_slot(slot[1]):
            return True
        agents = self._present.get(row.project, ())
        return not any(Capability.RESEARCH in agent.can(row.repository_id) for agent in agents)


def sought(capabilities: Iterable[Capability]) -> frozenset[Capability]:
    """The capabilities of the assignments that an agent could be given."""
    return frozenset(Capability.RESEARCH if one is Capability.SURVEY else one for one in capabilities)
