"""A shape that was stored and read again is the same shape: a process that starts finds the pipelines of the one before."""

import pytest

from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.pipeline.domain import events
from pointsman.services.pipeline.domain.dag import Graph, Node
from pointsman.services.pipeline.domain.enums import EventName
from pointsman.services.pipeline.domain.machine import MACHINE
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_shape_of_a_template_has_the_same_digest_after_it_was_stored(template: str) -> None:
    graph = template_graph(template)
    read = Graph(from_json(to_json(graph.nodes), tuple[Node, ...]))
    assert read.digest == graph.digest


@pytest.mark.parametrize(
    ("name", "payload", "expected"),
    [
        (
            EventName.BARRIER_TIMED_OUT,
            '{"group":"g","number":1,"absent":["A"]}',
            events.BarrierTimedOut("g", 1, ("A",), ()),
        ),
        (EventName.RETRY_EXHAUSTED, '{"stages":["A"]}', events.RetryExhausted(("A",), forced_on=False)),
    ],
)
def test_an_event_of_an_older_version_is_read_without_what_it_did_not_say(
    name: EventName, payload: str, expected: object
) -> None:
    assert from_json(payload, MACHINE.events[name]) == expected
