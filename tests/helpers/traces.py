"""What a run's trace has to be, told from the journals alone; for the recording collector and for a real back end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import MetaData, select

from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.tables import chassis_tables
from pointsman.services.chassis.telemetry.context import transition_span_id
from tests.helpers.collector import Collector, values_of

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")


@dataclass(frozen=True)
class Arrived:
    """A span as somebody has it who received it."""

    span_id: str
    parent_id: str
    name: str
    attributes: Mapping[str, str]

    @property
    def is_transition(self) -> bool:
        """Whether it stands for a row of a journal."""
        return "pointsman.seq" in self.attributes


def arrived_at(kept: Collector, trace_id: str) -> list[Arrived]:
    """The spans of a trace that the recording collector has."""
    return [
        Arrived(key, span.parent_span_id.hex(), span.name, values_of(span))
        for key, span in kept.of_trace(trace_id).items()
    ]


def transitions_of(data: Path, run_id: str, trace_id: str) -> set[str]:
    """The span ids that the journals of all four stores ask for in a run's trace."""
    wanted: set[str] = set()
    for name in CONTEXTS:
        database = Database(StoreSettings(data=data).url_for(name), name)
        journal = chassis_tables(MetaData()).journal
        found = select(journal.c.entity_id, journal.c.seq, journal.c.run_id, journal.c.traceparent)
        rows = database.read_now(lambda connection: connection.execute(found).all())  # noqa: B023
        wanted |= {
            transition_span_id(trace_id, row.entity_id, row.seq)
            for row in rows
            if row.run_id == run_id or row.traceparent.startswith(f"00-{trace_id}-")
        }
        database.close()
    return wanted


def roots_of(spans: Iterable[Arrived]) -> list[Arrived]:
    """The spans that say that nothing is above them."""
    return [span for span in spans if not span.parent_id]


def differences(spans: Iterable[Arrived], data: Path, run_id: str, trace_id: str) -> list[str]:
    """What is wrong with a trace: lost or invented transitions, spans without a parent, not exactly one root."""
    by_id = {span.span_id: span for span in spans}
    wanted = transitions_of(data, run_id, trace_id)
    transitions = {key for key, span in by_id.items() if span.is_transition}
    root = transition_span_id(trace_id, run_id, 0)
    wrong = [f"lost {key}" for key in wanted - transitions]
    wrong += [f"invented {by_id[key].name}" for key in transitions - wanted]
    wrong += [
        f"{span.name} has no parent here" for key, span in by_id.items() if key != root and span.parent_id not in by_id
    ]
    roots = [span.span_id for span in roots_of(by_id.values())]
    return wrong + ([] if roots == [root] else [f"{len(roots)} roots: {roots}"])
