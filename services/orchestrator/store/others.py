"""The agents besides the one that waits: who made what is to be judged, and where researchers are."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pointsman.services.orchestrator.domain.builtin import is_survey_slot
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.store.agents import Present

Authors = frozenset[tuple[Any, ...]]
"""Run, agent and principal of those who worked in the runs whose work is to be judged."""
NOBODY: Authors = frozenset()
_SLOT = re.compile(r'"slot":"([A-Za-z0-9_.-]*)"')


class Researchers:
    """Where researchers are present now."""

    def __init__(self, present: Mapping[str, tuple[Present, ...]]) -> None:
        self._present = present
        self._surveyed = {
            project
            for project, agents in present.items()
            if any(Capability.SURVEY in one.capabilities for one in agents)
        }

    def may_survey(self, capabilities: frozenset[Capability], row: Any) -> bool:
        """Whether an agent with these capabilities may take the research of a row as a surveyor."""
        if Capability.SURVEY not in capabilities or row.capability != Capability.RESEARCH:
            return False
        slot = _SLOT.search(row.body)
        if slot is not None and is_survey_slot(slot[1]):
            return True
        return not self._is_there(Capability.RESEARCH, row)

    def leave_to_surveyor(self, row: Any) -> bool:
        """Whether it is a survey, which costs no model, and a surveyor is there for it."""
        if row.capability != Capability.RESEARCH or row.project not in self._surveyed:
            return False
        slot = _SLOT.search(row.body)
        return slot is not None and is_survey_slot(slot[1]) and self._is_there(Capability.SURVEY, row)

    def _is_there(self, capability: Capability, row: Any) -> bool:
        return any(
            capability in agent.can(row.repository_id)
            for agent in self._present.get(row.project, ())
            if agent.work_for(row.entity_id, reserved=bool(row.reserved))
        )


NO_RESEARCHERS = Researchers({})


def sought(capabilities: Iterable[Capability]) -> frozenset[Capability]:
    """The capabilities of the assignments that an agent could be given."""
    return frozenset(Capability.RESEARCH if one is Capability.SURVEY else one for one in capabilities)


class Others(NamedTuple):
    """What has to be known of other agents to give an agent work."""

    authors: Authors = NOBODY
    researchers: Researchers = NO_RESEARCHERS
