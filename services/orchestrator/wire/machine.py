"""The table of transitions on the wire."""

from pointsman.api.orchestrator.v1 import machine_pb2 as pb
from pointsman.services.orchestrator.domain import table
from pointsman.services.orchestrator.domain.enums import TERMINAL, State
from pointsman.services.orchestrator.wire.runs import state


def machine() -> pb.GetMachineResponse:
    """The table."""
    return pb.GetMachineResponse(
        version=table.VERSION,
        states=[state(item) for item in State],
        initial=state(table.INITIAL),
        terminal=[state(item) for item in State if item in TERMINAL],
        transitions=[
            pb.MachineTransition(
                source=state(row.source),
                event=str(row.event),
                guard=row.guard.name,
                target=state(row.target),
                actions=row.action_names,
            )
            for row in table.TABLE.rows
        ],
    )
