"""The table of transitions on the wire."""

from pointsman.api.orchestrator.v1 import machine_pb2 as pb
from pointsman.services.orchestrator.domain import table
from pointsman.services.orchestrator.domain.enums import TERMINAL, State
from pointsman.services.orchestrator.wire import enums


def machine() -> pb.GetMachineResponse:
    """The table."""
    return pb.GetMachineResponse(
        version=table.VERSION,
        states=[enums.STATE.to_wire(item) for item in State],
        initial=enums.STATE.to_wire(table.INITIAL),
        terminal=[enums.STATE.to_wire(item) for item in State if item in TERMINAL],
        transitions=[
            pb.MachineTransition(
                source=enums.STATE.to_wire(row.source),
                event=str(row.event),
                guard=row.guard.name,
                target=enums.STATE.to_wire(row.target),
                actions=row.action_names,
            )
            for row in table.TABLE.rows
        ],
    )
